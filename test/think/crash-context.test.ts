import { crashMatrix, type CrashOutcome, type CrashScenario, type Program } from "perdure/testing";
import { expect, test } from "vitest";
import { allFacts, env, every, expectCovered, MATRIX_MS, ofType } from "../crash/drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";
import type { ContextCommand, ContextLook } from "./crash-context-program.ts";

const program = await bundleProgram(new URL("./crash-context-program.ts", import.meta.url));

/** Told again in every life, as a queue would: it is said once all the same. */
const scenario: CrashScenario<ContextLook> = {
  program,
  env,
  async finish(child: Program) {
    await child.send({ type: "tell" } satisfies ContextCommand);
    return (await child.waitFor(({ type }) => type === "look")) as ContextLook;
  },
};

function check(outcome: CrashOutcome<ContextLook>): void {
  const { result } = outcome.after;
  expect(ofType(allFacts(outcome), "failed")).toEqual([]);
  expect(result.texts).toEqual(["one", "Noted one.", "two", "Noted two."]);
  // Calls of one step run side by side.
  const lines = (text: string) => text.split("\n").toSorted();
  expect(lines(result.memory)).toEqual(["one", "one again", "two", "two again"]);
  expect(result.team).toBe("one\ntwo");
  // One prompt for all lives; what was written since is not in it.
  expect(new Set(result.systems).size).toBe(1);
  expect(result.systems[0]).toContain(result.prompt);
  expect(result.prompt).toContain("(empty)");
}

test(
  "what the model writes is written once, and its prompt stays the same, killed after every commit",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix({ ...scenario, check, slack: 8 });
    expectCovered(matrix, 12);
    expect(matrix.reference.result.systems).toHaveLength(4);
  },
);

test("killed again after the second commit of later lives", { timeout: MATRIX_MS }, async () => {
  const { killed } = await crashMatrix({ ...scenario, check, again: [2, 1], points: every(3, 1), slack: 8 });
  expect(killed.length).toBeGreaterThan(1);
});
