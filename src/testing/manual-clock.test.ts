import { expect, test } from "vitest";
import { sleep } from "../base/time.ts";
import { manualClock } from "./manual-clock.ts";

test("timers run in the order of their due times, each at its own time", async () => {
  const clock = manualClock(1000);
  const seen: [string, number][] = [];
  clock.after(30, () => seen.push(["c", clock.now()]));
  clock.after(10, () => seen.push(["a", clock.now()]));
  clock.after(10, () => seen.push(["b", clock.now()]));
  clock.after(31, () => seen.push(["late", clock.now()]));
  await clock.advance(30);
  expect(seen).toEqual([
    ["a", 1010],
    ["b", 1010],
    ["c", 1030],
  ]);
  expect(clock.now()).toBe(1030);
  expect(clock.pending()).toBe(1);
  expect(clock.untilNext()).toBe(1);
});

test("nothing runs before its time and a cancelled timer never runs", async () => {
  const clock = manualClock();
  let ran = 0;
  const cancel = clock.after(5, () => ran++);
  await clock.advance(4);
  expect(ran).toBe(0);
  cancel();
  cancel();
  await clock.advance(100);
  expect(ran).toBe(0);
  expect(clock.pending()).toBe(0);
  expect(clock.untilNext()).toBeUndefined();
});

test("a timer that sets a timer runs it in the same move, and promises settle between two timers", async () => {
  const clock = manualClock(0);
  const seen: string[] = [];
  async function work() {
    await sleep(clock, 10);
    seen.push(`first ${clock.now()}`);
    await Promise.resolve();
    await sleep(clock, 10);
    seen.push(`second ${clock.now()}`);
  }
  const done = work();
  clock.after(15, () => seen.push("between"));
  await clock.advance(20);
  await done;
  expect(seen).toEqual(["first 10", "between", "second 20"]);
});

test("work that is about to set a timer gets to set it before the clock moves", async () => {
  const clock = manualClock(0);
  async function work() {
    for (let i = 0; i < 20; i++) await Promise.resolve();
    await sleep(clock, 10);
    return clock.now();
  }
  const done = work();
  await clock.advance(10);
  expect(await done).toBe(10);
});

test("setting it back changes the wall clock and not the time that timers wait", async () => {
  const clock = manualClock(1000);
  let ran = 0;
  clock.after(10, () => ran++);
  await clock.set(500);
  expect(clock.now()).toBe(500);
  await clock.advance(9);
  expect(ran).toBe(0);
  await clock.set(510);
  expect(ran).toBe(1);
});

test("overlapping moves run one after the other", async () => {
  const clock = manualClock(0);
  const seen: number[] = [];
  clock.after(10, () => seen.push(clock.now()));
  clock.after(20, () => seen.push(clock.now()));
  await Promise.all([clock.advance(10), clock.advance(10)]);
  expect(seen).toEqual([10, 20]);
  expect(clock.now()).toBe(20);
});

test("a timer that throws fails the move, after the rest ran", async () => {
  const clock = manualClock(0);
  let ran = 0;
  clock.after(1, () => {
    throw new Error("broken timer");
  });
  clock.after(2, () => ran++);
  await expect(clock.advance(5)).rejects.toThrow("broken timer");
  expect(ran).toBe(1);
  expect(clock.now()).toBe(5);
  await clock.advance(1);
  expect(clock.now()).toBe(6);
});

test("timers that set each other without end fail the move instead of hanging the test", async () => {
  const clock = manualClock(0);
  const again = () => void clock.after(0, again);
  again();
  await expect(clock.advance(0)).rejects.toMatchObject({ code: "limit" });
});

test("a clock refuses to advance backwards or to nowhere", async () => {
  const clock = manualClock(0);
  await expect(clock.advance(-1)).rejects.toMatchObject({ code: "bad_input" });
  await expect(clock.advance(Number.NaN)).rejects.toMatchObject({ code: "bad_input" });
  await expect(clock.set(Number.NaN)).rejects.toMatchObject({ code: "bad_input" });
  expect(clock.now()).toBe(0);
});
