import { and, createCollection, eq, localOnlyCollectionOptions } from "@tanstack/db";
import { createToolExecutionEffect, makeDurableTool, openLocalLog } from "perdure/collections";
import type { RowLog, ToolCallRecord } from "perdure/collections";
import { expect, test } from "vitest";
import { add, altered, gate, openCalls, pending, waiting } from "./calls.ts";
import { until } from "../../support/until.ts";

/** A collection with a backend of its own, that can hold a write back or refuse it. */
function customCollection() {
  const stored = new Map<string, ToolCallRecord>();
  let refuse: (row: ToolCallRecord) => boolean = () => false;
  let sink: { begin(): void; write(change: object): void; commit(): void; truncate(): void } | undefined;
  const put = (type: "insert" | "update", row: ToolCallRecord) => {
    stored.set(row.id, row);
    sink?.begin();
    sink?.write({ type, value: row });
    sink?.commit();
  };
  const persist =
    (type: "insert" | "update") =>
    async ({ transaction }: { transaction: { mutations: { modified: unknown }[] } }) => {
      await Promise.resolve();
      for (const { modified } of transaction.mutations) {
        const row = plain(modified as ToolCallRecord);
        if (refuse(row)) throw new Error("refused by the backend");
        put(type, row);
      }
    };
  const calls = createCollection<ToolCallRecord, string>({
    getKey: (row) => row.id,
    startSync: true,
    sync: {
      rowUpdateMode: "full",
      sync: (parameters) => {
        sink = parameters as unknown as typeof sink;
        parameters.markReady();
      },
    },
    onInsert: persist("insert"),
    onUpdate: persist("update"),
  });
  return {
    calls,
    refuseWhen: (rule: typeof refuse) => (refuse = rule),
    remote: (row: ToolCallRecord) => put(stored.has(row.id) ? "update" : "insert", row),
    stored: (id: string) => stored.get(id),
    resync: () => {
      sink?.begin();
      sink?.truncate();
      for (const value of stored.values()) sink?.write({ type: "insert", value });
      sink?.commit();
    },
  };
}

function plain(row: ToolCallRecord): ToolCallRecord {
  return Object.fromEntries(
    Object.entries(row).filter(([field]) => !field.startsWith("$")),
  ) as unknown as ToolCallRecord;
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 10));

test("trap: a local edit of a confirmed pending row makes it leave and re-enter a `$synced` query: executed once", async () => {
  const { calls, rows } = openCalls(openLocalLog());
  const ran: string[] = [];
  const { promise, resolve } = gate<{ sum: number }>();
  const effect = createToolExecutionEffect({
    query: (q) => q.from({ c: calls }).where(({ c }) => and(eq(c.status, "pending"), eq(c.$synced, true))),
    tools: [add],
    implementations: {
      add: (_args, run) => {
        ran.push(run.row.id);
        return promise;
      },
    },
    // Nobody claims: the row stays pending while it runs, and after that.
    onComplete: () => {},
  });
  await calls.insert(pending("1")).isPersisted.promise;
  await until(() => ran.length === 1);
  for (const progress of [1, 2, 3]) {
    await calls.update("1", (row) => void (row.progress = progress)).isPersisted.promise;
  }
  await settled();
  resolve({ sum: 3 });
  await effect.idle();
  await calls.update("1", (row) => void (row.progress = 4)).isPersisted.promise;
  await settled();
  expect(ran).toEqual(["1"]);
  // A new try is a new execution.
  await rows.update("1", (row) => void (row.attempt = 1));
  await until(() => ran.length === 2);
  await effect.dispose();
});

test("trap: a claim that the backend refuses executes nothing, and is tried for again", async () => {
  const { calls, refuseWhen, remote, stored } = customCollection();
  const ran: string[] = [];
  const problems: string[] = [];
  let refusals = 2;
  refuseWhen((row) => row.status === "executing" && refusals-- > 0);
  const effect = createToolExecutionEffect({
    query: (q) => q.from({ c: calls }).where(({ c }) => and(eq(c.status, "pending"), eq(c.$synced, true))),
    tools: [add],
    collection: calls,
    implementations: { add: ({ a, b }, run) => (ran.push(run.row.id), { sum: a + b }) },
    onProblem: (error) => problems.push(error.message),
  });
  remote(pending("1"));
  await until(() => stored("1")?.status === "completed");
  expect(ran).toEqual(["1"]);
  expect(problems).toEqual(["refused by the backend", "refused by the backend"]);
  await effect.dispose();
});

test("trap: a claim that fails after the tool has begun does not begin it again (callbacks that do not wait)", async () => {
  const { calls, refuseWhen, remote } = customCollection();
  refuseWhen((row) => row.status === "executing");
  const ran: string[] = [];
  const effect = createToolExecutionEffect({
    query: (q) => q.from({ c: calls }).where(({ c }) => and(eq(c.status, "pending"), eq(c.$synced, true))),
    tools: [add],
    implementations: { add: ({ a, b }, run) => (ran.push(run.row.id), { sum: a + b }) },
    onExecuting: (row) => {
      const write = calls.update(row.id, (draft) => void (draft.status = "executing"));
      write.isPersisted.promise.catch(() => {});
    },
    onComplete: () => {},
  });
  remote(pending("1"));
  await until(() => ran.length === 1);
  await settled();
  expect(calls.get("1")?.status).toBe("pending");
  expect(ran).toEqual(["1"]);
  await effect.dispose();
});

test("trap: a call that the backend refuses is never executed, though it shows for a moment", async () => {
  const { calls, refuseWhen, remote } = customCollection();
  refuseWhen((row) => row.id === "refused");
  const ran: string[] = [];
  const effect = createToolExecutionEffect({
    query: (q) => q.from({ c: calls }).where(({ c }) => eq(c.status, "pending")),
    tools: [add],
    implementations: { add: ({ a, b }, run) => (ran.push(run.row.id), { sum: a + b }) },
    onComplete: () => {},
  });
  await effect.ready;
  await expect(calls.insert(pending("refused")).isPersisted.promise).rejects.toThrow("refused by the backend");
  remote(pending("1"));
  await until(() => ran.length > 0);
  await effect.idle();
  expect(ran).toEqual(["1"]);
  await effect.dispose();
});

test("trap: a re-sync of a collection executes nothing again", async () => {
  const { calls, remote, resync, stored } = customCollection();
  const ran: string[] = [];
  const { promise, resolve } = gate<{ sum: number }>();
  const effect = createToolExecutionEffect({
    query: (q) => q.from({ c: calls }).where(({ c }) => eq(c.status, "pending")),
    tools: [add],
    collection: calls,
    implementations: {
      add: (_args, run) => {
        ran.push(run.idempotencyKey);
        return run.idempotencyKey === "1" ? { sum: 3 } : promise;
      },
    },
  });
  remote(pending("1"));
  await until(() => stored("1")?.status === "completed");
  remote(pending("2"));
  await until(() => ran.length === 2);
  resync();
  await settled();
  resolve({ sum: 3 });
  await until(() => stored("2")?.status === "completed");
  resync();
  await settled();
  expect(ran).toEqual(["1", "2"]);
  await effect.dispose();
});

test("trap: effects start all at once; an executor runs as many as it was told, in the query's order", async () => {
  const { calls, rows } = openCalls(openLocalLog());
  let running = 0;
  let most = 0;
  const order: string[] = [];
  const effect = createToolExecutionEffect({
    query: (q) =>
      q
        .from({ c: calls })
        .where(({ c }) => eq(c.status, "pending"))
        .orderBy(({ c }) => c.createdAt),
    tools: [add],
    collection: calls,
    concurrency: 1,
    implementations: {
      add: async (_args, { row }) => {
        most = Math.max(most, ++running);
        order.push(row.id);
        await settled();
        running--;
        return { sum: 3 };
      },
    },
  });
  await rows.insertAll(["c", "b", "a"].map((id, n) => pending(id, { createdAt: `2026-01-0${n + 1}` })));
  await until(() => rows.all().every((row) => row.status === "completed"));
  expect(most).toBe(1);
  expect(order).toEqual(["c", "b", "a"]);
  await effect.dispose();
});

test("trap: effects tell of deltas only; what was there before, and what came during a run, is executed", async () => {
  const { calls, rows } = openCalls(openLocalLog());
  await rows.insertAll([pending("early-1"), pending("early-2")]);
  const ran: string[] = [];
  const effect = createToolExecutionEffect({
    query: waiting(calls),
    tools: [add],
    collection: calls,
    concurrency: 1,
    implementations: {
      add: async (_args, { row }) => {
        ran.push(row.id);
        if (row.id === "early-1") await rows.insert(pending("during"));
        return { sum: 3 };
      },
    },
  });
  await until(() => ran.length === 3);
  expect(ran.toSorted()).toEqual(["during", "early-1", "early-2"]);
  await effect.dispose();
});

test("trap: a row whose handler failed is never delivered again by an effect; here it is tried again", async () => {
  const { calls, rows } = openCalls(openLocalLog());
  let claims = 0;
  const effect = createToolExecutionEffect({
    query: waiting(calls),
    tools: [add],
    implementations: { add: () => ({ sum: 3 }) },
    onExecuting: () => {
      if (++claims === 1) throw new Error("the database was away");
    },
    onComplete: async (row, result) => {
      await rows.update(row.id, (draft) => Object.assign(draft, { status: "completed", result }));
    },
    onProblem: () => {},
  });
  await rows.insert(pending("1"));
  await until(() => rows.get("1")?.status === "completed");
  expect(claims).toBe(2);
  await effect.dispose();
});

test("a tool that failed and a result that could not be written are two things", async () => {
  const inner = openLocalLog();
  let refuse = 2;
  const log = altered<RowLog>(inner, {
    write: async (write) => {
      if (write.changes.some((change) => change.value?.status === "completed") && refuse-- > 0) {
        throw new Error("the disk is full");
      }
      return inner.write(write);
    },
  });
  const { calls, rows } = openCalls(log);
  let ran = 0;
  const problems: string[] = [];
  const effect = createToolExecutionEffect({
    query: waiting(calls),
    tools: [add],
    collection: calls,
    retry: { maxAttempts: 5, delayMs: 1 },
    implementations: { add: ({ a, b }) => (ran++, { sum: a + b }) },
    onProblem: (error) => problems.push(error.message),
  });
  await rows.insert(pending("1"));
  await until(() => rows.get("1")?.status === "completed");
  expect(ran).toBe(1);
  expect(problems).toEqual(["the disk is full", "the disk is full"]);
  expect(rows.get("1")).toMatchObject({ result: { sum: 3 }, attempt: 0 });
  await effect.dispose();
});

test("without a collection the callbacks write; one that throws is called again, the tool is not", async () => {
  const { calls, rows } = openCalls(openLocalLog());
  const log: string[] = [];
  let refusals = 1;
  const effect = createToolExecutionEffect({
    query: waiting(calls),
    tools: [add],
    implementations: {
      add: ({ a }) => {
        log.push(`run ${a}`);
        if (a < 0) throw new Error("negative");
        return { sum: a };
      },
    },
    onExecuting: async (row) => {
      await calls.update(row.id, (draft) => void (draft.status = "executing")).isPersisted.promise;
    },
    onComplete: async (row, result) => {
      if (refusals-- > 0) throw new Error("away");
      log.push(`completed ${JSON.stringify(result)}`);
      await calls.update(row.id, (draft) => void (draft.status = "completed")).isPersisted.promise;
    },
    onError: async (row, error) => {
      log.push(`failed ${error.message}`);
      await calls.update(row.id, (draft) => void (draft.status = "failed")).isPersisted.promise;
    },
    onProblem: (error) => log.push(`problem ${error.message}`),
  });
  await calls.insert(pending("1", { args: { a: 7, b: 0 } })).isPersisted.promise;
  await until(() => rows.get("1")?.status === "completed");
  await calls.insert(pending("2", { args: { a: -1, b: 0 } })).isPersisted.promise;
  await until(() => rows.get("2")?.status === "failed");
  expect(log).toEqual(["run 7", "problem away", 'completed {"sum":7}', "run -1", "failed negative"]);
  await effect.dispose();
});

test("it works on collections that are on no log: local-only ones, and ones with their own sync", async () => {
  const local = createCollection(localOnlyCollectionOptions<ToolCallRecord>({ getKey: (row) => row.id }));
  const { calls: own } = customCollection();
  for (const calls of [local, own]) {
    let ran = 0;
    const effects = [1, 2].map(() =>
      createToolExecutionEffect({
        query: (q) => q.from({ c: calls as typeof local }).where(({ c }) => eq(c.status, "pending")),
        tools: [add],
        collection: calls as typeof local,
        implementations: { add: ({ a, b }) => (ran++, { sum: a + b }) },
      }),
    );
    const tool = makeDurableTool(add, calls as typeof local, { generationId: "g" });
    const context = { toolCallId: "c1", emitCustomEvent: () => {} };
    expect(await tool.execute?.({ a: 1, b: 2 }, context)).toEqual({ sum: 3 });
    expect(await tool.execute?.({ a: 1, b: 2 }, context)).toEqual({ sum: 3 });
    // Two of them in one process do not both begin a call.
    expect(ran).toBe(1);
    expect(calls.get("g:c1")).toMatchObject({ status: "completed", result: { sum: 3 } });
    await Promise.all(effects.map((effect) => effect.dispose()));
  }
});

test("dispose inside of a tool ends, also when the tool waits for it", async () => {
  const { calls, rows } = openCalls(openLocalLog());
  const { promise, resolve } = gate();
  const effect = createToolExecutionEffect({
    query: waiting(calls),
    tools: [add],
    collection: calls,
    disposeWaitMs: 5,
    implementations: {
      add: async () => {
        await effect.dispose();
        resolve();
        return { sum: 3 };
      },
    },
  });
  await rows.insert(pending("1"));
  await promise;
  await until(() => rows.get("1")?.status === "completed");
  expect(effect.disposed).toBe(true);
  await effect.dispose();
});
