import { expect, test } from "vitest";
import { seedCount } from "../support/seed-count.ts";
import { seedsTold } from "./report.ts";
import { play } from "./run.ts";

const RUNS = seedCount(300, 12);
const BATCH = 6;
const TIMEOUT_MS = 300_000;

const batches = Array.from({ length: Math.ceil(RUNS / BATCH) }, (_, i): [number, number] => [
  1 + i * BATCH,
  Math.min(RUNS, (i + 1) * BATCH),
]);

/*
 * Whole hosts with everything that can go wrong around them: processes that are killed or lose power, disks that are slow,
 * full or fail, lines that are cut, frames that come late or twice, clocks that jump. `npm run simulate` plays more runs.
 */
test.each(batches)(
  "whatever goes wrong, every promise holds (runs %i to %i)",
  async (first, last) => {
    for (let seed = first; seed <= last; seed++) {
      const verdict = await play(seed);
      expect(verdict.broken.length > 0 ? seedsTold(verdict) : "").toBe("");
    }
  },
  TIMEOUT_MS,
);

test.each([
  [4571, "a tab that asks about a stream joins what another one goes on with"],
  [13528, "an answer with nothing in it is shown to nobody while its turn, cut, waits for room on the disk"],
])("run %i, which once broke a promise: %s", async (seed) => {
  const verdict = await play(seed);
  expect(verdict.broken.length > 0 ? seedsTold(verdict) : "").toBe("");
});

test("the same seed is the same run, and another seed is another one", async () => {
  const seeds = [3, 11, 25, 42];
  const traces: string[] = [];
  for (const seed of seeds) {
    const first = await play(seed);
    const second = await play(seed);
    expect(second.trace).toEqual(first.trace);
    traces.push(first.trace.join("\n"));
  }
  expect(new Set(traces).size).toBe(seeds.length);
});
