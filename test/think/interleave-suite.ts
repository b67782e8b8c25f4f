// The runs as tests. They are in two files, because files are what is tested side by side.
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { play, report } from "./interleave-run.ts";

/** All runs of the suite, both files together. */
const RUNS = 10_000;
const RUNS_PER_TEST = 250;
/** A machine that does much else at the same time needs long. */
const TIMEOUT_MS = 600_000;

/** The runs of one of two files; or only the one that `PERDURE_SEED` names. */
export function interleavings(half: 0 | 1): void {
  digestAtOnce();
  const seed = process.env.PERDURE_SEED;
  if (seed !== undefined) {
    if (half === 0) test(`run ${seed}`, () => playAll(Number(seed), Number(seed)), TIMEOUT_MS);
    else test("the run is in the other file", () => expect(Number.isInteger(Number(seed))).toBe(true));
    return;
  }
  for (let from = half * (RUNS / 2); from < (half + 1) * (RUNS / 2); from += RUNS_PER_TEST) {
    const to = from + RUNS_PER_TEST - 1;
    test(`runs ${from} to ${to}`, () => playAll(from, to), TIMEOUT_MS);
  }
}

async function playAll(from: number, to: number): Promise<void> {
  for (let seed = from; seed <= to; seed++) {
    const wrong = await play(seed);
    if (wrong.length > 0) expect.fail(await report(seed, wrong));
  }
}

/** The platform's digest comes from another thread, at a time that no seed decides. This one gives the same at once. */
function digestAtOnce(): void {
  const digest = async (_algorithm: string, data: Uint8Array) =>
    new Uint8Array(createHash("sha256").update(data).digest()).buffer;
  Object.defineProperty(crypto.subtle, "digest", { value: digest, configurable: true });
}
