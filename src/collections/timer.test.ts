import { expect, test } from "vitest";
import { createPump } from "./worker/pump.ts";
import { monotonicClock } from "./timer.ts";
import { pause, startTimer } from "./timer.ts";

test.each([2 ** 31, 1e15, Number.POSITIVE_INFINITY])("a wait of %d ms does not end at once", async (ms) => {
  const rung: string[] = [];
  const ends = [
    startTimer(ms, () => rung.push("timer")),
    // Leases and the time for an approval may be long.
    monotonicClock.after(ms, () => rung.push("clock")),
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

test("a pump that may wait for ever does wait for what runs", async () => {
  let over = false;
  const run = async () => {
    await pause(20);
    over = true;
    return "done" as const;
  };
  const pump = createPump({ read: () => ["work"], idOf: (item) => item, run, giveUp: () => {} });
  pump.wake();
  await pause(5);
  await pump.dispose(Number.POSITIVE_INFINITY);
  expect(over).toBe(true);
});
