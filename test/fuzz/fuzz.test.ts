// Frames and requests against a real host: right ones, nearly right ones and anything. See docs/testing.md.
import { expect, onTestFinished, test } from "vitest";
import { seedCount } from "../support/seed-count.ts";
import { corpus } from "./corpus.ts";
import { fuzz, Target } from "./run.ts";

const SEEDS = [1, 2, 3, 4, 5, 6].slice(0, seedCount(6, 1));
const COUNT = seedCount(4_000, 800);
/** Thousands of frames on a busy machine. */
const SLOW_MS = 600_000;

test.each(SEEDS)(
  "whatever is sent, the host stays up, answers as it says, and nobody else notices (seed %d)",
  { timeout: SLOW_MS },
  async (seed) => {
    const { sent, kinds } = await fuzz(seed, COUNT);
    expect(sent).toBe(COUNT);
    expect(kinds.size).toBeGreaterThan(20);
  },
);

test.each(corpus())("what was kept is harmless: %s", { timeout: SLOW_MS }, async (_name, { to, frames, requests }) => {
  const target = new Target();
  onTestFinished(() => target.close());
  await target.open();
  for (const path of to) {
    for (const wire of target.wiresOf(path)) {
      for (const frame of frames ?? []) await target.send(wire, frame);
    }
    for (const one of requests ?? []) await target.request({ ...one, path: one.path.replace("{agent}", path) });
  }
  await target.check();
  expect(target.faults).toEqual([]);
});
