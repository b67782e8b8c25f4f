import { beforeAll, expect, test } from "vitest";
import { digestAtOnce } from "../support/digest-at-once.ts";
import { seedCount } from "../support/seed-count.ts";
import { play, report } from "./branches-run.ts";

/*
 * Whatever is done to sessions, branches, forks and views, and whenever the power goes: each session shows what a simple
 * tree in memory says, nothing is lost, the model reads the conversation of its session and nothing else, nobody hears
 * of a stream of another session, and nothing is left of what was deleted. See branches-actions.ts for what happens,
 * branches-checks.ts for what is checked. `PERDURE_SEED` plays one run.
 */
const RUNS = seedCount(300, 100);
const RUNS_PER_TEST = 50;
/** A machine that does much else at the same time needs long. */
const TIMEOUT_MS = 300_000;

const only = process.env.PERDURE_SEED;
const firsts = Array.from({ length: RUNS / RUNS_PER_TEST }, (_, i) => i * RUNS_PER_TEST);
const ranges = only === undefined ? firsts.map((first) => [first, first + RUNS_PER_TEST - 1]) : [[+only, +only]];

beforeAll(digestAtOnce);

async function firstFailure(first: number, last: number): Promise<string> {
  for (let seed = first; seed <= last; seed++) {
    const wrong = await play(seed);
    if (wrong.length > 0) return report(seed, wrong);
  }
  return "";
}

test.each(ranges)(
  "runs %i to %i",
  async (first, last) => expect(await firstFailure(first as number, last as number)).toBe(""),
  TIMEOUT_MS,
);
