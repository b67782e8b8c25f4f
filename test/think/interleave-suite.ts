// The runs as tests. They are in two files, because files are what is tested side by side.
import { defer } from "perdure/host";
import { digestAtOnce } from "../support/digest-at-once.ts";
import { seedCount } from "../support/seed-count.ts";
import { play, report } from "./interleave-run.ts";

/** All runs of the suite, both files together. */
const RUNS = seedCount(10_000, 800);
const RUNS_PER_TEST = 250;
/** A machine that does much else at the same time needs long. */
export const TIMEOUT_MS = 600_000;

/** The first and the last seed of each test of one of the two files; or only the one that `PERDURE_SEED` names. */
export function seedsOf(half: 0 | 1): readonly (readonly [number, number])[] {
  const only = process.env.PERDURE_SEED;
  if (only !== undefined) return [[Number(only), Number(only)]];
  const firsts = Array.from({ length: RUNS / 2 / RUNS_PER_TEST }, (_, i) => (half * RUNS) / 2 + i * RUNS_PER_TEST);
  return firsts.map((first) => [first, first + RUNS_PER_TEST - 1]);
}

/** Plays runs until one goes wrong. @returns what to read then; nothing when all went well. */
export async function firstFailure(first: number, last: number): Promise<string> {
  using _ = defer(digestAtOnce());
  for (let seed = first; seed <= last; seed++) {
    const wrong = await play(seed);
    if (wrong.length > 0) return report(seed, wrong);
  }
  return "";
}
