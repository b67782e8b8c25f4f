import { crashMatrix } from "perdure/testing";
import { expect, test } from "vitest";
import { ackedIn, env, expectCovered, expectNoFailure, MATRIX_MS, remote, thinned, untilIdle } from "./drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";

interface Result {
  readonly state: { readonly n: number };
  readonly runs: readonly { readonly key: string }[];
}

const OPS: readonly [method: string, ...args: number[]][] = [
  ["setUp"],
  ["set", 1],
  ["note", 2],
  ["setAndNote", 3],
  ["set", 5],
  ["setAndNote", 6],
  ["note", 8],
];

/** What must be stored after the first `count` calls. */
function after(count: number): Result {
  let n = 0;
  const runs: { key: string }[] = [];
  for (const [method, value = 0] of OPS.slice(0, count)) {
    if (method === "set" || method === "setAndNote") n = value;
    if (method === "note" || method === "setAndNote") runs.push({ key: `note ${value}` });
    if (method === "setAndNote") runs.push({ key: `note ${value + 1}` });
  }
  return { state: { n }, runs };
}

const idOf = ([method, n]: (typeof OPS)[number]) => `${method} ${n}`;

test(
  "state and tables, killed after every commit: what a caller was told is there, and nothing is there by halves",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix({
      points: thinned(2, 2),
      program: await bundleProgram(new URL("./work-program.ts", import.meta.url)),
      env,
      async drive(child) {
        for (const op of OPS)
          await remote(child, "Worker")
            .as(idOf(op))
            .call(...op);
      },
      async finish(child) {
        await untilIdle(child);
        const { state, runs } = await remote(child, "Worker").call<Result>("result");
        return { state, runs: runs.map(({ key }) => ({ key })) };
      },
      check(outcome) {
        expectNoFailure(outcome);
        const told = ackedIn(outcome.before.facts).size;
        // The call under way has happened, or it has not.
        expect([after(told), after(told + 1)]).toContainEqual(outcome.after.result);
      },
    });
    expectCovered(matrix, OPS.length, 2);
    expect(matrix.reference.result).toEqual(after(OPS.length));
  },
);
