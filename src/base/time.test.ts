import { expect, test } from "vitest";
import {
  backgroundClock,
  backOff,
  foregroundClock,
  monotonicClock,
  pause,
  startTimer,
  systemClock,
  within,
} from "./time.ts";

test.each([2 ** 31, 1e15, Number.POSITIVE_INFINITY])("a wait of %d ms does not end at once", async (ms) => {
  const rung: string[] = [];
  const ends = [
    startTimer(ms, () => rung.push("timer")),
    // Leases and the time for an approval may be long.
    ...[systemClock, backgroundClock, monotonicClock, foregroundClock].map((clock) =>
      clock.after(ms, () => rung.push("clock")),
    ),
  ];
  const stop = new AbortController();
  const paused = pause(ms, stop.signal).then(() => rung.push("pause"));
  await pause(20);
  expect(rung).toEqual([]);
  for (const end of ends) end();
  stop.abort();
  await paused;
  expect(rung).toEqual(["pause"]);
});

test("a pause under a signal that has aborted is none", async () => {
  expect(await pause(2 ** 31, AbortSignal.abort())).toBeUndefined();
});

test("what was cancelled does not run", async () => {
  let rung = false;
  backgroundClock.after(1, () => (rung = true))();
  await pause(20);
  expect(rung).toBe(false);
});

test("a wait doubles with each failure, up to its bound", () => {
  expect([1, 2, 3, 4].map((failures) => backOff(failures, 100, 500))).toEqual([100, 200, 400, 500]);
  expect(backOff(3, 100)).toBe(400);
});

test("work is waited for, but not for longer than it may take; what it throws is thrown", async () => {
  expect(await within(systemClock, 2 ** 31, Promise.resolve("done"))).toBe("done");
  expect(await within(systemClock, 1, new Promise(() => {}))).toBeUndefined();
  await expect(within(systemClock, 2 ** 31, Promise.reject(new Error("no")))).rejects.toThrow("no");
});
