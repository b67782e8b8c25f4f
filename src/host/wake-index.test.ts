import { expect, test } from "vitest";
import { manualClock } from "../testing/manual-clock.ts";
import type { AgentIndex } from "./storage.ts";
import { WakeIndex } from "./wake-index.ts";

/** An index in memory, with as much as the waking needs. */
function setUp(awake: string[] = []) {
  const times = new Map<string, number>();
  const woken: string[] = [];
  const clock = manualClock();
  const index: Pick<AgentIndex, "awake" | "due" | "nextDue" | "wake"> = {
    awake: () => awake,
    due: (now, limit) =>
      [...times]
        .filter(([, at]) => at <= now)
        .slice(0, limit)
        .map(([id]) => id),
    nextDue: () => (times.size === 0 ? null : Math.min(...times.values())),
    wake: (id) => void times.delete(id),
  };
  const wakes = new WakeIndex(index as AgentIndex, clock, (id) => void woken.push(id));
  return { times, woken, clock, wakes };
}

test("at the start it wakes all that were cut off, many of them in several goes", async () => {
  const ids = Array.from({ length: 100 }, (_, i) => `a${i}`);
  const { wakes, woken, clock } = setUp(ids);
  wakes.start();
  expect(woken.length).toBeGreaterThan(0);
  expect(woken.length).toBeLessThan(100);
  await clock.advance(100);
  expect(woken).toEqual(ids);
});

test("each rings at its time, the earliest first", async () => {
  const { wakes, woken, clock, times } = setUp();
  times.set("late", clock.now() + 2000).set("soon", clock.now() + 1000);
  wakes.start();
  await clock.advance(999);
  expect(woken).toEqual([]);
  await clock.advance(1);
  expect(woken).toEqual(["soon"]);
  await clock.advance(1000);
  expect(woken).toEqual(["soon", "late"]);
});

test("what is overdue rings at once, all of it", async () => {
  const { wakes, woken, clock, times } = setUp();
  for (let i = 0; i < 100; i++) times.set(`a${i}`, clock.now() - 1000);
  wakes.start();
  await clock.advance(0);
  expect(woken).toHaveLength(100);
});

test("rearm sees a time that was added later", async () => {
  const { wakes, woken, clock, times } = setUp();
  wakes.start();
  times.set("a", clock.now() + 10);
  wakes.rearm();
  await clock.advance(10);
  expect(woken).toEqual(["a"]);
});

test("after stop nothing is woken, also what was still to come of the start", async () => {
  const { wakes, woken, clock, times } = setUp(Array.from({ length: 100 }, (_, i) => `a${i}`));
  times.set("b", clock.now() + 10);
  wakes.start();
  const { length } = woken;
  wakes.stop();
  wakes.rearm();
  await clock.advance(1000);
  expect(woken).toHaveLength(length);
  expect(clock.pending()).toBe(0);
});
