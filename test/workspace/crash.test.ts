import { globSync } from "node:fs";
import { basename } from "node:path";
import { crashMatrix } from "perdure/testing";
import type { CrashOutcome, Program } from "perdure/testing";
import { expect, test } from "vitest";
import { bundleProgram } from "../support/bundle-program.ts";
import { ackedIn, env, expectCovered, expectNoFailure, MATRIX_MS, remote } from "../crash/drive.ts";
import { filesAfter, OPS, type Result } from "./crash-model.ts";

interface Outcome extends Result {
  /** Large files on the disk, and what is left of those that were being written. */
  readonly onDisk: readonly string[];
}

const idOf = (at: number) => `step ${at}`;

async function drive(child: Program): Promise<void> {
  for (const [at, op] of OPS.entries()) await remote(child, "Keeper").as(idOf(at)).call("act", op);
}

function check(outcome: CrashOutcome<Outcome>): void {
  const { result } = outcome.after;
  expectNoFailure(outcome);
  const told = ackedIn(outcome.before.facts);
  const done = OPS.findIndex((_, at) => !told.has(idOf(at)));
  const count = done === -1 ? OPS.length : done;
  // Each file is whole, and all are what they were before or after the step that was cut.
  expect([filesAfter(count), filesAfter(Math.min(count + 1, OPS.length))]).toContainEqual(result.files);
  expectClean(result);
}

function expectClean(result: Outcome): void {
  expect(result.counted).toEqual(result.real);
  expect(result.doubts).toBe(0);
  expect(result.onDisk).toHaveLength(result.large);
  expect(result.onDisk.filter((name) => !/^[0-9a-f]{64}$/.test(name))).toEqual([]);
}

test(
  "a workspace, killed after every commit: no file by halves, no bytes that nobody refers to",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix<Outcome>({
      program: await bundleProgram(new URL("./crash-program.ts", import.meta.url)),
      env,
      drive,
      async finish(child) {
        const result = await remote(child, "Keeper").call<Result>("result");
        const onDisk = globSync("blobs/**/*", { cwd: child.dir })
          .map((path) => basename(path))
          .filter((name) => /^[0-9a-f]{64}$|\.draft$/.test(name));
        return { ...result, onDisk };
      },
      check,
    });
    expectCovered(matrix, 25);
    const { result } = matrix.reference;
    expect(result.files).toEqual(filesAfter(OPS.length));
    // The older ones were trimmed, and what only they needed is gone.
    expect(result.points).toEqual(["m3", "m4", "m5"]);
    expectClean(result);
  },
);
