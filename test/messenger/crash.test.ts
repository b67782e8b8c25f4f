import { crashMatrix } from "perdure/testing";
import { expect, test } from "vitest";
import { every, expectCovered, MATRIX_MS } from "../crash/drive.ts";
import { check, CUT_CALLS, expectFileOnce, expectKilledIn, scenario } from "./crash-kit.ts";

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

test(
  "a conversation where questions are answered in words, killed after every commit",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix({ ...scenario({ FINDS: "1", WORDS: "1" }), check: check(false), slack: 20 });
    expect(matrix.reference.result.seen.join()).toMatch(/Answer YES \w{4} or NO/);
    expect(matrix.reference.result.seen).toContain("Approved by Ada");
    expectCovered(matrix, 30);
  },
);

test("an answer that is stopped by its button, killed after every commit", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix({ ...scenario({ FINDS: "1", STOP: "button" }), check: check(false), slack: 20 });
  expect(matrix.reference.result.seen.at(-1)).toBe("Working.\n\n(stopped)");
  expectCovered(matrix, 30);
});

const FILES = { ACTS: "files" };

test("pictures in and out, killed after every commit", { timeout: MATRIX_MS }, async () => {
  for (const FINDS of ["1", "0"]) {
    const counts = { inbound: 1, ran: 0 };
    const files = check(FINDS === "0", counts);
    const matrix = await crashMatrix({ ...scenario({ ...FILES, FINDS }), check: files, slack: 20 });
    expect(matrix.reference.result.seen).toEqual(["Here.", "file of 100", "file of 200", "file of 300"]);
    expect(matrix.reference.result.files).toBe(2);
    expectCovered(matrix, 10);
  }
});

test("killed when file 2 of 3 is sent and nobody has heard of it", { timeout: MATRIX_MS }, async () => {
  await expectFileOnce(scenario({ ...FILES, FINDS: "1", KILL_IN: "file:2" }), false);
  await expectFileOnce(scenario({ ...FILES, FINDS: "0", KILL_IN: "file:2" }), true);
});
