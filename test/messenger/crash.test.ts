import { crashMatrix } from "perdure/testing";
import { expect, test } from "vitest";
import { every, expectCovered, MATRIX_MS } from "../crash/drive.ts";
import { check, CUT_CALLS, expectKilledIn, scenario } from "./crash-kit.ts";

test("a conversation at a messenger that can be asked, killed after every commit", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix({ ...scenario({ FINDS: "1" }), check: check(false), slack: 20 });
  const { seen } = matrix.reference.result;
  // Three messages of the answer, what was said before the question, the question, the rest, and what was stopped.
  expect(seen).toHaveLength(7);
  expect(seen[4]).toContain("Approved by Ada");
  expect(seen[6]).toBe("Working.\n\n(stopped)");
  expectCovered(matrix, 30);
});

test("the same at one that cannot be asked", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix({ ...scenario(), check: check(true), slack: 20 });
  expectCovered(matrix, 30);
});

test("killed three times in a row", { timeout: MATRIX_MS }, async () => {
  const again = { again: [2, 3], points: every(11, 3), slack: 20 };
  const { killed } = await crashMatrix({ ...scenario({ FINDS: "1" }), check: check(false), ...again });
  expect(killed.length).toBeGreaterThan(1);
});

test.each(CUT_CALLS)(
  "killed when the network has done %s and nobody has heard of it",
  { timeout: MATRIX_MS },
  async (KILL_IN) => {
    await expectKilledIn(KILL_IN, scenario, { FINDS: "1" }, false);
    await expectKilledIn(KILL_IN, scenario, { FINDS: "0" }, true);
  },
);
