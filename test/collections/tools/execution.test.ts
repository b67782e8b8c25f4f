import { createToolExecutionEffect } from "perdure/collections";
import type { RowLog } from "perdure/collections";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { backends } from "../backends.ts";
import type { TestPlace } from "../backends.ts";
import { add, gate, note, openCalls, openGenerations, pending, waiting } from "./calls.ts";
import { until } from "../../support/until.ts";

describe.each(backends)("tool execution on $name", (backend) => {
  let place: TestPlace;
  let log: RowLog;
  let tables = 0;
  beforeAll(async () => {
    place = await backend.start();
    log = await place.open();
  });
  afterAll(() => place.stop());
  /** Calls of their own for each test. */
  const open = (on = log) => openCalls(on, `calls${tables}`);
  const fresh = () => {
    tables++;
    return open();
  };

  test("requirement: Tool execution effects: a row that matches the query is executed and its result written", async () => {
    const { calls, rows } = fresh();
    const told: string[] = [];
    const effect = createToolExecutionEffect({
      query: waiting(calls),
      tools: [add],
      collection: calls,
      implementations: {
        add: async ({ a, b }, run) => {
          expect(run).toMatchObject({ idempotencyKey: "1", attempt: 1 });
          expect(run.row.generationId).toBe("g");
          expect(rows.get("1")?.status).toBe("executing");
          return { sum: a + b };
        },
      },
      onExecuting: (row) => void told.push(`executing ${row.id}`),
      onComplete: (row, result) => void told.push(`completed ${row.id} ${JSON.stringify(result)}`),
    });
    await effect.ready;
    await rows.insert(pending("1"));
    await until(() => told.length === 2);
    expect(rows.get("1")).toMatchObject({ status: "completed", result: { sum: 3 }, attempt: 0 });
    expect(told).toEqual(["executing 1", 'completed 1 {"sum":3}']);
    expect(effect.disposed).toBe(false);
    await effect.dispose();
    expect(effect.disposed).toBe(true);
  });

  test("requirement: Tool execution model: the effect takes its own tools' calls and leaves the others", async () => {
    const { calls, rows } = fresh();
    await rows.insertAll([pending("a"), pending("b", { name: "note" }), pending("c", { name: "nobody's" })]);
    const did: string[] = [];
    const forAdd = createToolExecutionEffect({
      query: waiting(calls),
      tools: [add],
      collection: calls,
      implementations: { add: ({ a, b }, run) => (did.push(`add ${run.row.id}`), { sum: a + b }) },
    });
    const forNote = createToolExecutionEffect({
      query: waiting(calls),
      tools: [note],
      collection: calls,
      implementations: { note: (_args, run) => did.push(`note ${run.row.id}`) },
    });
    await until(() => did.length === 2);
    await Promise.all([forAdd.idle(), forNote.idle()]);
    expect(did.toSorted()).toEqual(["add a", "note b"]);
    expect(rows.get("c")?.status).toBe("pending");
    const strict = createToolExecutionEffect({
      query: waiting(calls),
      tools: [add],
      strict: true,
      collection: calls,
      implementations: { add: () => ({ sum: 0 }) },
    });
    await until(() => rows.get("c")?.status === "failed");
    expect(rows.get("c")?.error).toBe('There is no tool "nobody\'s" here.');
    await Promise.all([forAdd, forNote, strict].map((effect) => effect.dispose()));
  });

  test("requirement: Idempotency: of two executors without claims exactly one begins each of 100 calls", async () => {
    const { rows } = fresh();
    const started = new Map<string, number>();
    const workers = await Promise.all(
      [0, 1].map(async () => {
        const { calls } = open(await place.open());
        const effect = createToolExecutionEffect({
          query: waiting(calls),
          tools: [add],
          collection: calls,
          concurrency: 20,
          implementations: {
            add: async ({ a, b }, run) => {
              started.set(run.idempotencyKey, (started.get(run.idempotencyKey) ?? 0) + 1);
              await Promise.resolve();
              return { sum: a + b };
            },
          },
        });
        await effect.ready;
        return effect;
      }),
    );
    const ids = Array.from({ length: 100 }, (_, n) => `call-${n}`);
    await rows.insertAll(ids.map((id) => pending(id)));
    await until(() => rows.all().every((row) => row.status === "completed"));
    expect([...started.keys()].toSorted()).toEqual(ids.toSorted());
    expect([...started.values()].every((times) => times === 1)).toBe(true);
    await Promise.all(workers.map((worker) => worker.dispose()));
  });

  test("invariant 1: one execution for each claim, a settled call never again, and the same key for each try", async () => {
    const { calls, rows } = fresh();
    const keys: string[] = [];
    const effect = createToolExecutionEffect({
      query: (q) => q.from({ c: calls }),
      tools: [add],
      collection: calls,
      implementations: {
        add: ({ a, b }, run) => {
          keys.push(`${run.idempotencyKey} ${run.attempt}`);
          return { sum: a + b };
        },
      },
    });
    await rows.insert(pending("1"));
    await until(() => rows.get("1")?.status === "completed");
    // It is touched, but it is over.
    await rows.update("1", (row) => void (row.progress = "seen"));
    await effect.idle();
    expect(keys).toEqual(["1 1"]);
    // Recovery gives it to whoever comes: at least once over all, under the same key.
    await rows.update("1", (row) => {
      row.status = "pending";
      row.attempt = 1;
    });
    await until(() => rows.get("1")?.status === "completed");
    expect(keys).toEqual(["1 1", "1 2"]);
    await effect.dispose();
  });

  test("a result that comes after somebody else took the call over is refused", async () => {
    const { calls, rows } = fresh();
    const { promise, resolve } = gate<{ sum: number }>();
    const problems: string[] = [];
    let signal: AbortSignal | undefined;
    let times = 0;
    const effect = createToolExecutionEffect({
      query: waiting(calls),
      tools: [add],
      collection: calls,
      implementations: {
        add: (_args, run) => {
          signal = run.signal;
          return ++times === 1 ? promise : { sum: -1 };
        },
      },
      onProblem: (error) => problems.push(error.message),
    });
    await rows.insert(pending("1"));
    await until(() => signal !== undefined);
    // Another worker, after recovery.
    await rows.update("1", (row) => void (row.status = "pending"));
    await rows.update("1", (row) => void (row.status = "executing"));
    await until(() => signal?.aborted === true);
    resolve({ sum: 3 });
    await effect.idle();
    expect(rows.get("1")).toMatchObject({ status: "executing" });
    expect(rows.get("1")).not.toHaveProperty("result");
    expect(problems).toEqual([expect.stringContaining("does not count")]);
    await effect.dispose();
  });

  test("invariant 3: dispose aborts what runs, waits for it, and leaves it to others", async () => {
    const { calls, rows } = fresh();
    const seen: string[] = [];
    const started = gate();
    const effect = createToolExecutionEffect({
      query: waiting(calls),
      tools: [add],
      collection: calls,
      implementations: {
        add: (_args, { signal }) =>
          new Promise((_resolve, reject) => {
            started.resolve();
            signal.addEventListener("abort", () => {
              seen.push("aborted");
              setTimeout(() => {
                seen.push("over");
                reject(new Error("stopped"));
              }, 5);
            });
          }),
      },
    });
    await rows.insert(pending("1"));
    await started.promise;
    await effect.dispose();
    expect(seen).toEqual(["aborted", "over"]);
    expect(rows.get("1")).toMatchObject({ status: "pending", attempt: 0 });
    const next = createToolExecutionEffect({
      query: waiting(calls),
      tools: [add],
      collection: calls,
      implementations: { add: () => ({ sum: 3 }) },
    });
    await until(() => rows.get("1")?.status === "completed");
    await next.dispose();
  });

  test("requirement: Cancellation: a call that is set to cancelled aborts its execution; its result is discarded", async () => {
    const { calls, rows } = fresh();
    const started = gate();
    const cancelled: string[] = [];
    const effect = createToolExecutionEffect({
      query: waiting(calls),
      tools: [add],
      collection: calls,
      implementations: {
        add: async (_args, { signal }) => {
          started.resolve();
          await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
          return { sum: 3 };
        },
      },
      onCancelled: (row) => void cancelled.push(row.id),
    });
    await rows.insert(pending("1"));
    await started.promise;
    await rows.update("1", (row) => void (row.status = "cancelled"));
    await until(() => cancelled.length === 1);
    await effect.idle();
    expect(rows.get("1")?.status).toBe("cancelled");
    expect(rows.get("1")).not.toHaveProperty("result");
    await effect.dispose();
  });

  describe("invariant 4: a result whose answer was cancelled meanwhile", () => {
    const late = async (
      lateResults: "discard" | "store" | ((row: { id: string }, result: unknown) => void) | undefined,
    ) => {
      const { calls, rows } = fresh();
      const { generations, rows: answers } = openGenerations(log);
      const id = `g${tables}`;
      const time = new Date().toISOString();
      await answers.insert({ id, agentName: "a", model: "m", status: "generating", createdAt: time, updatedAt: time });
      const effect = createToolExecutionEffect({
        query: waiting(calls),
        tools: [add],
        collection: calls,
        generations,
        lateResults,
        implementations: {
          add: async (_args, { signal }) => {
            await answers.update(id, (row) => void (row.status = "cancelled"));
            expect(signal.aborted).toBe(true);
            return { sum: 3 };
          },
        },
      });
      await rows.insertAll([pending("1", { generationId: id })]);
      await until(() => rows.get("1")?.status === "cancelled");
      // Its answer is over before it begins.
      await rows.insert(pending("2", { generationId: id }));
      await until(() => rows.get("2")?.status === "cancelled");
      await effect.dispose();
      return rows.get("1");
    };

    test("is discarded by default, and the call is cancelled", async () => {
      expect(await late(undefined)).not.toHaveProperty("result");
    });
    test("can be stored", async () => {
      expect(await late("store")).toMatchObject({ status: "cancelled", result: { sum: 3 } });
    });
    test("can be handed to the app", async () => {
      const got: unknown[] = [];
      expect(await late((row, result) => void got.push(row.id, result))).not.toHaveProperty("result");
      expect(got).toEqual(["1", { sum: 3 }]);
    });
  });

  test("a result and the cancel of its answer cannot both win", async () => {
    const { calls, rows } = fresh();
    const { generations, rows: answers } = openGenerations(log);
    const time = new Date().toISOString();
    const ids = Array.from({ length: 10 }, (_, n) => `race${tables}-${n}`);
    await answers.insertAll(
      ids.map((id) => ({ id, agentName: "a", model: "m", status: "generating", createdAt: time, updatedAt: time })),
    );
    const effect = createToolExecutionEffect({
      query: waiting(calls),
      tools: [add],
      collection: calls,
      generations,
      implementations: {
        add: (_args, run) => {
          void answers.update(run.row.generationId, (row) => void (row.status = "cancelled"));
          return { sum: 3 };
        },
      },
    });
    await rows.insertAll(ids.map((id) => pending(id, { generationId: id })));
    await until(() => rows.all().every((row) => row.status !== "pending" && row.status !== "executing"));
    await effect.dispose();
    const order = new Map<string, string>();
    const table = log.table(`calls${tables}`);
    for (const row of table.rows()) order.set(row.key, String(row.value.status));
    // Each was cancelled before its result could be written: the condition was judged behind the cancel.
    expect([...order.values()]).toEqual(ids.map(() => "cancelled"));
  });
});
