import { createToolExecutionEffect } from "perdure/collections";
import type { RowLog } from "perdure/collections";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { backends } from "../backends.ts";
import type { TestPlace } from "../backends.ts";
import { add, note, openCalls, pending, waiting } from "./calls.ts";
import { until } from "../../support/until.ts";

describe.each(backends)("tries of tools on $name", (backend) => {
  let place: TestPlace;
  let log: RowLog;
  let tables = 0;
  beforeAll(async () => {
    place = await backend.start();
    log = await place.open();
  });
  afterAll(() => place.stop());
  const fresh = () => openCalls(log, `tries${++tables}`);

  test("failures are tried again by policy under the same claim, counted in the row, and end as failed", async () => {
    const { calls, rows } = fresh();
    const attempts: string[] = [];
    const told: string[] = [];
    const effect = createToolExecutionEffect({
      query: waiting(calls),
      tools: [add],
      collection: calls,
      retry: { maxAttempts: 3, delayMs: 1 },
      implementations: {
        add: async ({ a }, run) => {
          attempts.push(`${run.idempotencyKey} ${run.attempt} ${rows.get(run.idempotencyKey)?.attempt}`);
          if (a === 0 && run.attempt === 2) return { sum: 0 };
          throw new Error(`no ${run.attempt}`);
        },
      },
      onRetry: (row, error, attempt) => void told.push(`${row.id} ${error.message} (${attempt})`),
      onError: (row, error) => void told.push(`${row.id} ${error.message}!`),
    });
    await rows.insert(pending("1"));
    await until(() => rows.get("1")?.status === "failed");
    expect(rows.get("1")).toMatchObject({ error: "no 3", attempt: 2 });
    expect(attempts).toEqual(["1 1 0", "1 2 1", "1 3 2"]);
    await until(() => told.length === 3);
    expect(told).toEqual(["1 no 1 (1)", "1 no 2 (2)", "1 no 3!"]);
    await rows.insert(pending("2", { args: { a: 0, b: 0 } }));
    await until(() => rows.get("2")?.status === "completed");
    expect(rows.get("2")).toMatchObject({ attempt: 1 });
    expect(rows.get("2")).not.toHaveProperty("error");
    // Others have tried it as often as is allowed: it is not begun.
    await rows.insert(pending("3", { attempt: 3 }));
    await until(() => rows.get("3")?.status === "failed");
    expect(rows.get("3")?.error).toContain("given up after 3 tries");
    expect(attempts.some((one) => one.startsWith("3"))).toBe(false);
    await effect.dispose();
  });

  test("arguments and results are checked by the tool's schemas, with errors that say what is wrong", async () => {
    const { calls, rows } = fresh();
    let times = 0;
    const effect = createToolExecutionEffect({
      query: waiting(calls),
      tools: [add, note],
      collection: calls,
      retry: { maxAttempts: 5, delayMs: 1 },
      implementations: {
        // @ts-expect-error the wrong shape on purpose
        add: () => (times++, { sum: "three" }),
        note: () => 1n,
      },
    });
    await rows.insertAll([
      pending("args", { args: { a: "x", b: 2 } }),
      pending("result"),
      pending("json", { name: "note", args: {} }),
    ]);
    await until(() => rows.all().every((row) => row.status === "failed"));
    expect(rows.get("args")?.error).toMatch(/^The arguments of the tool "add" are not valid: a: .*expected number/);
    expect(rows.get("result")?.error).toMatch(/^The result of the tool "add" is not what its outputSchema says: sum: /);
    expect(rows.get("json")?.error).toMatch(/^The result of the tool "note" is not JSON: /);
    // Another try would come to the same.
    expect(times).toBe(1);
    await effect.dispose();
  });

  test("news of a long job are kept in the row, the latest only", async () => {
    const { calls, rows } = fresh();
    const told: unknown[] = [];
    const effect = createToolExecutionEffect({
      query: waiting(calls),
      tools: [add],
      collection: calls,
      implementations: {
        add: async (_args, { progress, row }) => {
          for (let n = 1; n < 100; n++) void progress({ percent: n });
          await progress({ percent: 100 });
          expect(rows.get(row.id)?.progress).toEqual({ percent: 100 });
          return { sum: 3 };
        },
      },
      onProgress: (_row, value) => void told.push(value),
    });
    await rows.insert(pending("1"));
    await until(() => rows.get("1")?.status === "completed");
    expect(told).toEqual([{ percent: 1 }, { percent: 100 }]);
    expect(rows.get("1")?.progress).toEqual({ percent: 100 });
    await effect.dispose();
  });
});
