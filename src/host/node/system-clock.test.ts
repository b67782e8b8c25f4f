import { expect, test } from "vitest";
import { systemClock } from "./system-clock.ts";

test.each([2 ** 31, 1e15, Number.POSITIVE_INFINITY])("a wait of %d ms does not end at once", async (ms) => {
  let rung = false;
  const cancel = systemClock.after(ms, () => (rung = true));
  await new Promise((resolve) => setTimeout(resolve, 20));
  cancel();
  expect(rung).toBe(false);
});

test("what was cancelled does not run", async () => {
  let rung = false;
  systemClock.after(1, () => (rung = true))();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(rung).toBe(false);
});
