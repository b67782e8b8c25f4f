import { createCollection, inArray } from "@tanstack/db";
import { createApprovals, createClaims, createToolExecutionEffect, logCollectionOptions } from "perdure/collections";
import type { ApprovalEvent, Claims, ClaimRecord, RowLog, ToolCallRecord } from "perdure/collections";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { backends } from "../backends.ts";
import type { TestPlace } from "../backends.ts";
import { add, altered, gate, openCalls, pending, waiting } from "./calls.ts";
import { until } from "../../support/until.ts";

describe.each(backends)("workers and approvals on $name", (backend) => {
  let place: TestPlace;
  let log: RowLog;
  let tables = 0;
  beforeAll(async () => {
    place = await backend.start();
    log = await place.open();
  });
  afterAll(() => place.stop());
  const open = (on = log) => openCalls(on, `calls${tables}`);
  const fresh = () => {
    tables++;
    return open();
  };
  const claimsOf = (on: RowLog, options: { owner?: string; leaseMs?: number; maxAttempts?: number } = {}): Claims =>
    createClaims({
      collection: createCollection(
        logCollectionOptions<ClaimRecord>({ log: on, name: `claims${tables}`, getKey: (row) => row.id }),
      ),
      ...options,
    });
  const approvalsOf = (on: RowLog) =>
    createApprovals({
      events: createCollection(
        logCollectionOptions<ApprovalEvent>({
          log: on,
          name: `approvals${tables}`,
          getKey: (row) => row.id,
          orderAs: "seq",
        }),
      ),
    });
  /** A worker with a claim: it also takes over what another one has left. */
  const worker = (
    on: RowLog,
    claims: Claims,
    execute: (run: { idempotencyKey: string; attempt: number; signal: AbortSignal }) => Promise<number>,
    told: string[] = [],
  ) => {
    const { calls } = open(on);
    return createToolExecutionEffect({
      query: (q) => q.from({ c: calls }).where(({ c }) => inArray(c.status, ["pending", "executing"])),
      tools: [add],
      collection: calls,
      claims,
      implementations: { add: async (_args, run) => ({ sum: await execute(run) }) },
      onCancelled: (row) => void told.push(`cancelled ${row.id}`),
      onProblem: (error) => void told.push(error.message),
    });
  };

  test("many workers compete for the same tool: each call is executed once", async () => {
    const { rows } = fresh();
    const started: string[] = [];
    const workers = await Promise.all(
      ["a", "b", "c"].map(async (owner) => {
        const on = await place.open();
        const claims = claimsOf(on, { owner: `${owner}${tables}` });
        const effect = worker(on, claims, async (run) => {
          started.push(run.idempotencyKey);
          return 3;
        });
        await effect.ready;
        return { effect, claims };
      }),
    );
    const ids = Array.from({ length: 20 }, (_, n) => `call-${n}`);
    await rows.insertAll(ids.map((id) => pending(id)));
    await until(() => rows.all().every((row) => row.status === "completed"));
    expect(started.toSorted()).toEqual(ids.toSorted());
    for (const { effect, claims } of workers) {
      await effect.dispose();
      await claims.dispose();
    }
  });

  test("invariant 1: a call whose worker has died is executed again, under the same key, and the dead one's result is refused", async () => {
    const { rows } = fresh();
    const mine = await place.open();
    const hung = gate<number>();
    const slow = gate<number>();
    const keys: string[] = [];
    const problems: string[] = [];
    // It is alive, but it cannot say so and does not hear that another one took over: cut off, as far as claims go.
    const silent = claimsOf(cutOff(mine), { owner: `silent${tables}`, leaseMs: 300 });
    const first = worker(
      silent.log,
      silent,
      (run) => {
        keys.push(`${run.idempotencyKey} ${run.attempt}`);
        return hung.promise;
      },
      problems,
    );
    await rows.insert(pending("1"));
    await until(() => keys.length === 1);
    const claims = claimsOf(log, { owner: `next${tables}` });
    const second = worker(log, claims, (run) => {
      keys.push(`${run.idempotencyKey} ${run.attempt}`);
      return slow.promise;
    });
    await until(() => keys.length === 2);
    expect(keys).toEqual(["1 1", "1 2"]);
    hung.resolve(-1);
    await until(() => problems.some((text) => text.includes("does not count")));
    expect(rows.get("1")).toMatchObject({ status: "executing", attempt: 1 });
    slow.resolve(3);
    await until(() => rows.get("1")?.status === "completed");
    expect(rows.get("1")?.result).toEqual({ sum: 3 });
    await Promise.all([first.dispose(), second.dispose(), silent.dispose(), claims.dispose()]);
  });

  test("a claim that is asked to stop cancels its call", async () => {
    const { rows } = fresh();
    const claims = claimsOf(log, { owner: `w${tables}` });
    const told: string[] = [];
    const started = gate();
    const effect = worker(
      log,
      claims,
      ({ signal }) => {
        started.resolve();
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("stopped"))));
      },
      told,
    );
    await rows.insert(pending("1"));
    await started.promise;
    expect(await claims.requestCancel("tool:1")).toBe(true);
    await until(() => rows.get("1")?.status === "cancelled" && told.length === 1);
    expect(told).toEqual(["cancelled 1"]);
    await effect.idle();
    expect(claims.inspect("tool:1").state).toBe("free");
    await effect.dispose();
    await claims.dispose();
  });

  test("a call that waits for approval is executed when it was allowed, and fails when it was not", async () => {
    const { calls, rows } = fresh();
    const approvals = approvalsOf(log);
    const ran: string[] = [];
    const effect = createToolExecutionEffect({
      query: waiting(calls),
      tools: [add],
      collection: calls,
      approvals,
      implementations: { add: ({ a, b }, run) => (ran.push(run.idempotencyKey), { sum: a + b }) },
    });
    const asking = { needsApproval: true } satisfies Partial<ToolCallRecord>;
    await rows.insertAll([pending("yes", asking), pending("no", asking), pending("late", asking), pending("free")]);
    await until(() => approvals.pending().length === 3 && rows.get("free")?.status === "completed");
    expect(ran).toEqual(["free"]);
    // On another device.
    const phone = approvalsOf(await place.open());
    await phone.ready;
    await phone.approve("yes", { actorId: "ada" });
    await phone.deny("no", { actorId: "ada", reason: "too dear" });
    await phone.expire("late");
    await until(() => ["yes", "no", "late"].every((id) => rows.get(id)?.status !== "pending"));
    await until(() => rows.get("yes")?.status === "completed");
    expect(rows.get("no")).toMatchObject({ status: "failed", error: 'ada did not allow the tool "add": too dear.' });
    expect(rows.get("late")).toMatchObject({
      status: "failed",
      error: 'Nobody allowed the call of the tool "add" in time.',
    });
    expect(ran).toEqual(["free", "yes"]);
    await effect.dispose();
    phone.dispose();
    approvals.dispose();
  });

  test("a call that needs approval is not executed by an executor that knows of none", async () => {
    const { calls, rows } = fresh();
    const ran: string[] = [];
    const options = {
      query: waiting(calls),
      tools: [add],
      collection: calls,
      implementations: {
        add: (_args: unknown, run: { idempotencyKey: string }) => (ran.push(run.idempotencyKey), { sum: 3 }),
      },
    };
    const effect = createToolExecutionEffect(options);
    await rows.insertAll([pending("1", { needsApproval: true }), pending("2")]);
    await until(() => rows.get("2")?.status === "completed");
    await effect.idle();
    expect(ran).toEqual(["2"]);
    await effect.dispose();
    const allowed = createToolExecutionEffect({ ...options, approvals: "query" });
    await until(() => rows.get("1")?.status === "completed");
    await allowed.dispose();
  });
});

/** The same log, but nothing of claims is heard through it, and no sign of life goes out. */
function cutOff(log: RowLog): RowLog {
  return altered(log, {
    table: (name) => {
      const table = log.table(name);
      return name.startsWith("claims") ? altered(table, { subscribe: () => () => {} }) : table;
    },
    write: (write) =>
      write.changes.length === 1 && write.changes[0]?.key.startsWith("beat:")
        ? new Promise<never>(() => {})
        : log.write(write),
  });
}
