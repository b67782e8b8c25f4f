import { createCollection, inArray } from "@tanstack/db";
import { chat, toolDefinition } from "@tanstack/ai";
import { PerdureError } from "perdure";
import {
  createClaims,
  createToolExecutionEffect,
  logCollectionOptions,
  makeDurableTool,
  openLocalLog,
} from "perdure/collections";
import type { ClaimRecord, RowLog } from "perdure/collections";
import type { RowWrite } from "perdure/collections/log";
import { scriptedText } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { failing } from "../own-log.ts";
import { add, gate, openCalls, openGenerations, pending, waiting } from "./calls.ts";
import { until } from "../../support/until.ts";

const claimsOf = (log: RowLog, owner: string, more: { leaseMs?: number; maxAttempts?: number } = {}) =>
  createClaims({
    collection: createCollection(logCollectionOptions<ClaimRecord>({ log, name: "claims", getKey: (row) => row.id })),
    owner,
    ...more,
  });

const open = (calls: ReturnType<typeof openCalls>["calls"]) => (q: Parameters<ReturnType<typeof waiting>>[0]) =>
  q.from({ c: calls }).where(({ c }) => inArray(c.status, ["pending", "executing"]));

const setsStatus = (write: RowWrite, status: string) =>
  write.changes.some(({ table, value }) => table === "calls" && value?.["status"] === status);

test("a claim whose row could not be begun is given back, and the call is executed later", async () => {
  let failures = 1;
  const log = failing(openLocalLog(), (write) =>
    setsStatus(write, "executing") && failures-- > 0 ? new PerdureError("call_failed", "no") : undefined,
  );
  const { calls, rows } = openCalls(log);
  const claims = claimsOf(log, "w");
  const effect = createToolExecutionEffect({
    query: open(calls),
    tools: [add],
    collection: calls,
    claims,
    implementations: { add: ({ a, b }) => ({ sum: a + b }) },
    onProblem: () => {},
  });
  await rows.insert(pending("1"));
  await until(() => rows.get("1")?.status === "completed");
  expect(failures).toBeLessThan(1);
  await effect.dispose();
  await claims.dispose();
});

test("a result that the log will never take fails the call, once", async () => {
  const log = failing(openLocalLog(), (write) =>
    setsStatus(write, "completed") ? new PerdureError("too_large", "The row is longer than 10 bytes.") : undefined,
  );
  const { calls, rows } = openCalls(log);
  let times = 0;
  const effect = createToolExecutionEffect({
    query: waiting(calls),
    tools: [add],
    collection: calls,
    implementations: { add: () => ({ sum: ++times }) },
    onProblem: () => {},
  });
  await rows.insert(pending("1"));
  await until(() => rows.get("1")?.status === "failed");
  expect(rows.get("1")?.error).toContain("longer than 10 bytes");
  expect(times).toBe(1);
  await effect.dispose();
});

test.each([true, false])(
  "a call that is cancelled and asked for again while its tool still runs is executed again (claims: %s)",
  async (withClaims) => {
    const log = openLocalLog();
    const { calls, rows } = openCalls(log);
    const first = gate();
    let times = 0;
    const claims = withClaims ? claimsOf(log, "w") : undefined;
    const effect = createToolExecutionEffect({
      query: withClaims ? open(calls) : waiting(calls),
      tools: [add],
      collection: calls,
      ...(claims === undefined ? {} : { claims }),
      implementations: {
        add: async () => {
          // Does not listen to its signal.
          if (++times === 1) await first.promise;
          return { sum: times };
        },
      },
      onProblem: () => {},
    });
    await rows.insert(pending("1"));
    await until(() => times === 1);
    await rows.update("1", (row) => void (row.status = "cancelled"));
    await rows.update("1", (row) => void (row.status = "pending"));
    first.resolve();
    await until(() => rows.get("1")?.status === "completed");
    expect(rows.get("1")?.result).toEqual({ sum: 2 });
    await effect.dispose();
    await claims?.dispose();
  },
);

test("a call that is put back by the callback of its result is executed again", async () => {
  const log = openLocalLog();
  const { calls, rows } = openCalls(log);
  let times = 0;
  const effect = createToolExecutionEffect({
    query: waiting(calls),
    tools: [add],
    collection: calls,
    implementations: { add: () => ({ sum: ++times }) },
    onComplete: async (row) => {
      if (times < 3) await rows.update(row.id, (draft) => void (draft.status = "pending"));
    },
  });
  await rows.insert(pending("1"));
  await until(() => times === 3 && rows.get("1")?.status === "completed");
  await effect.idle();
  expect(rows.get("1")).toMatchObject({ status: "completed", result: { sum: 3 } });
  await effect.dispose();
});

test("an answer that is cancelled while its call is being claimed, or between two tries, begins no tool", async () => {
  const log = openLocalLog();
  const { calls, rows } = openCalls(log);
  const { generations, rows: answers } = openGenerations(log);
  const time = "2026-01-01T00:00:00.000Z";
  const answer = (id: string) =>
    answers.insert({ id, agentName: "a", status: "generating", model: "m", createdAt: time, updatedAt: time });
  const began: string[] = [];
  const effect = createToolExecutionEffect({
    query: waiting(calls),
    tools: [add],
    collection: calls,
    generations,
    retry: { maxAttempts: 3, delayMs: 5 },
    implementations: {
      add: async (_args, run) => {
        began.push(`${run.idempotencyKey} ${run.attempt} ${run.signal.aborted}`);
        throw new Error("no");
      },
    },
    onExecuting: async (row) => {
      if (row.id === "1") await answers.update("g1", (draft) => void (draft.status = "cancelled"));
    },
    onRetry: async (row) => {
      if (row.id === "2") await answers.update("g2", (draft) => void (draft.status = "cancelled"));
    },
    onProblem: () => {},
  });
  await answer("g1");
  await answer("g2");
  await rows.insert(pending("1", { generationId: "g1" }));
  await rows.insert(pending("2", { generationId: "g2" }));
  await until(() => rows.all().every((row) => row.status === "cancelled"));
  expect(began).toEqual(["2 1 false"]);
  await effect.dispose();
});

test("an executor that is disposed while it claims a call does not begin its tool", async () => {
  const log = openLocalLog();
  const { calls, rows } = openCalls(log);
  let times = 0;
  let ending: Promise<void> | undefined;
  const effect = createToolExecutionEffect({
    query: waiting(calls),
    tools: [add],
    collection: calls,
    implementations: { add: () => ({ sum: ++times }) },
    onExecuting: () => void (ending = effect.dispose()),
  });
  await rows.insert(pending("1"));
  await until(() => ending !== undefined);
  await ending;
  expect(times).toBe(0);
  expect(rows.get("1")?.status).toBe("pending");
});

test("a row that is no call does not stop the others", async () => {
  const log = openLocalLog();
  const { calls, rows } = openCalls(log);
  const told: string[] = [];
  const effect = createToolExecutionEffect({
    query: waiting(calls),
    tools: [add],
    collection: calls,
    implementations: { add: ({ a, b }) => ({ sum: a + b }) },
    onProblem: (error) => void told.push(error.message),
  });
  await log.write({
    changes: [{ table: "calls", key: "0", operation: "insert", value: { id: "0", status: "pending" } }],
  });
  await rows.insert(pending("1"));
  await rows.insert(pending("2"));
  await until(() => rows.get("1")?.status === "completed" && rows.get("2")?.status === "completed");
  expect(told).toHaveLength(1);
  await effect.dispose();
});

test("tries that ended with their worker count: a call is not begun more often than `retry` says", async () => {
  const log = openLocalLog();
  const { calls, rows } = openCalls(log);
  await rows.insert(pending("1"));
  // Workers that die without a word: each is the same owner, so the next takes over at once.
  for (let n = 0; n < 3; n++) {
    const claims = claimsOf(log, "w");
    const got = await claims.acquire("tool:1");
    expect(got.claim?.attempt).toBe(n + 1);
    await rows.update("1", (row) => void Object.assign(row, { status: "executing", attempt: n }));
  }
  let times = 0;
  const claims = claimsOf(log, "w");
  const effect = createToolExecutionEffect({
    query: open(calls),
    tools: [add],
    collection: calls,
    claims,
    retry: { maxAttempts: 3, delayMs: 1 },
    implementations: { add: () => ({ sum: ++times }) },
    onProblem: () => {},
  });
  await until(() => ["failed", "completed"].includes(rows.get("1")?.status ?? ""));
  expect(rows.get("1")?.status).toBe("failed");
  expect(times).toBe(0);
  await effect.dispose();
  await claims.dispose();
});

test("an output schema that changes its value changes it once", async () => {
  const log = openLocalLog();
  const { calls } = openCalls(log);
  const when = toolDefinition({
    name: "when",
    description: "Tells a day.",
    outputSchema: z.object({ day: z.string().transform((text) => new Date(text).getUTCDate()) }),
  });
  const effect = createToolExecutionEffect({
    query: waiting(calls),
    tools: [when],
    collection: calls,
    implementations: { when: () => ({ day: "2026-01-05" }) as never },
  });
  const adapter = scriptedText([{ toolCalls: [{ name: "when", input: {} }] }, "done"]);
  for await (const _ of chat({
    adapter,
    messages: [{ role: "user", content: "?" }],
    tools: [makeDurableTool(when, calls, { generationId: "g" })],
  }))
    void _;
  expect(adapter.calls[1]?.messages.at(-1)?.content).toBe('{"day":5}');
  await effect.dispose();
});

test("a worker that is disposed gives its call to another one at once, not when its lease is over", async () => {
  const log = openLocalLog();
  const run = (name: string) => {
    const { calls } = openCalls(log);
    const claims = claimsOf(log, name);
    const effect = createToolExecutionEffect({
      query: open(calls),
      tools: [add],
      collection: calls,
      claims,
      implementations: {
        add: async (_args, { signal }) => {
          if (name === "first") await new Promise((_, reject) => signal.addEventListener("abort", reject));
          return { sum: 1 };
        },
      },
      onProblem: () => {},
    });
    return { effect, claims };
  };
  const { rows } = openCalls(log);
  const first = run("first");
  await rows.insert(pending("1"));
  await until(() => rows.get("1")?.status === "executing");
  const second = run("second");
  await second.effect.idle();
  await first.effect.dispose();
  await until(() => rows.get("1")?.status === "completed");
  expect(rows.get("1")?.result).toEqual({ sum: 1 });
  await second.effect.dispose();
  await Promise.all([first.claims.dispose(), second.claims.dispose()]);
});
