import { expect, test } from "vitest";
import { PerdureError } from "../base/error.ts";
import { backOffMs, DEFAULT_RETRY, resolveRetry, retry } from "./retry.ts";
import { createWorld, openLife } from "../../test/support/fiber-host.ts";

test("fills in defaults", () => {
  expect(resolveRetry(undefined)).toEqual({ maxAttempts: 3, baseDelayMs: 100, maxDelayMs: 3000 });
  expect(resolveRetry({ maxAttempts: 5 }, { ...DEFAULT_RETRY, baseDelayMs: 7 })).toEqual({
    maxAttempts: 5,
    baseDelayMs: 7,
    maxDelayMs: 3000,
  });
});

test.each([
  { maxAttempts: 0 },
  { maxAttempts: 1.5 },
  { maxAttempts: Number.NaN },
  { baseDelayMs: -1 },
  { maxDelayMs: Number.POSITIVE_INFINITY },
  { baseDelayMs: 200, maxDelayMs: 100 },
  // Below the default base.
  { maxDelayMs: 50 },
])("refuses %o at once", async (options) => {
  expect(() => resolveRetry(options)).toThrow(expect.objectContaining({ code: "bad_config" }));
  let calls = 0;
  await expect(retry(openLife(createWorld()).context.host.clock, () => calls++, options)).rejects.toThrow(PerdureError);
  expect(calls).toBe(0);
});

test("backs off by a random share of a doubling delay with a cap", () => {
  const most = () => 1;
  expect([1, 2, 3, 6, 5000].map((n) => backOffMs(n, DEFAULT_RETRY, most))).toEqual([100, 200, 400, 3000, 3000]);
  expect(backOffMs(3, DEFAULT_RETRY, () => 0)).toBe(0);
  expect(backOffMs(3, DEFAULT_RETRY, () => 0.5)).toBe(200);
});

test("tries again until it works", async () => {
  const life = openLife(createWorld());
  const attempts: number[] = [];
  const result = retry(life.context.host.clock, (attempt) => {
    attempts.push(attempt);
    if (attempt < 3) throw new Error("not yet");
    return "done";
  });
  await life.advance(10_000);
  expect(await result).toBe("done");
  expect(attempts).toEqual([1, 2, 3]);
});

test("throws the last error when tries are used up, and at once when shouldRetry says no", async () => {
  const life = openLife(createWorld());
  const fail = (attempt: number) => Promise.reject(new Error(`failed ${attempt}`));
  const used = retry(life.context.host.clock, fail).catch((error: Error) => error.message);
  await life.advance(10_000);
  expect(await used).toBe("failed 3");
  const asked: unknown[] = [];
  const shouldRetry = (error: unknown, next: number) => {
    asked.push([(error as Error).message, next]);
    return false;
  };
  await expect(retry(life.context.host.clock, fail, { shouldRetry })).rejects.toThrow("failed 1");
  expect(asked).toEqual([["failed 1", 2]]);
});

test("a signal ends the waiting", async () => {
  const life = openLife(createWorld());
  const controller = new AbortController();
  let calls = 0;
  const result = retry(
    life.context.host.clock,
    () => {
      calls++;
      throw new Error("no");
    },
    { signal: controller.signal, baseDelayMs: 1000, maxAttempts: 5 },
  ).catch((error: unknown) => error);
  await life.settle();
  controller.abort("stop");
  expect(await result).toBe("stop");
  expect(calls).toBe(1);
});
