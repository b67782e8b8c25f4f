import { crashMatrix } from "perdure/testing";
import { expect, test } from "vitest";
import { ackedIn, env, expectCovered, expectNoFailure, MATRIX_MS, remote, thinned, untilIdle } from "../crash/drive.ts";

interface Loaded {
  readonly name: string;
  readonly version: string;
  readonly says: unknown;
  /** What its newer version was granted was granted to it. */
  readonly mayMore: boolean;
}

const OPS: readonly (readonly [method: string, ...args: string[]])[] = [
  ["load", "a", "1"],
  ["load", "b", "1"],
  ["load", "a", "2"],
  ["unload", "b"],
];
const idOf = (op: readonly string[]) => op.join(" ");

/** What is loaded after the first `count` calls. */
function after(count: number): Loaded[] {
  const loaded = new Map<string, string>();
  for (const [method, name = "", version = ""] of OPS.slice(0, count)) {
    if (method === "load") loaded.set(name, version);
    else loaded.delete(name);
  }
  return [...loaded].map(([name, version]) => ({ name, version, says: version, mayMore: version === "2" }));
}

test(
  "extensions, killed after every commit: what was loaded is there whole, with its code and its permissions",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix<readonly Loaded[]>({
      // Its workers are files of their own: it cannot be one bundle.
      program: new URL("./crash-program.ts", import.meta.url),
      env,
      points: thinned(2),
      async drive(child) {
        for (const op of OPS) {
          const [method, ...args] = op;
          await remote(child, "Keeper")
            .as(idOf(op))
            .call(method, ...args);
        }
      },
      async finish(child) {
        await untilIdle(child);
        return remote(child, "Keeper").call<readonly Loaded[]>("result");
      },
      check(outcome) {
        expectNoFailure(outcome);
        const told = OPS.filter((op) => ackedIn(outcome.before.facts).has(idOf(op))).length;
        // What a caller was told holds; the call under way was done, or not at all.
        expect([after(told), after(told + 1)]).toContainEqual(outcome.after.result);
      },
    });
    expectCovered(matrix, 4, 2);
    expect(matrix.reference.result).toEqual(after(OPS.length));
  },
);
