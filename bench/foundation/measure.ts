import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** What a work costs, as a rate: `count` pieces of it, timed. */
export async function rate(count: number, work: () => unknown): Promise<number> {
  const begun = performance.now();
  await work();
  return (count * 1000) / (performance.now() - begun);
}

/** Both rates of two works that are measured in turns, so that a busy moment of the machine meets both. */
export async function inTurns(
  rounds: number,
  ours: () => Promise<number>,
  bare: () => Promise<number>,
): Promise<{ ours: number; bare: number }> {
  const all = { ours: [] as number[], bare: [] as number[] };
  for (let round = 0; round < rounds; round++) {
    all.bare.push(await bare());
    all.ours.push(await ours());
  }
  return { ours: percentile(all.ours, 50), bare: percentile(all.bare, 50) };
}

export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN;
}

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Memory that is really in use: on the heap and beside it, and as the operating system sees it. */
export async function memory(): Promise<{ heap: number; rss: number }> {
  for (let i = 0; i < 3; i++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heap: heapUsed + external, rss };
}

/** Waits for a condition that is on its way. */
export async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 5));
}
