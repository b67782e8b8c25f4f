import { crashMatrix, crashRun, type Program } from "perdure/testing";
import { expect, test } from "vitest";
import { every, expectCovered, MATRIX_MS } from "../crash/drive.ts";
import { check, CUT_CALLS, expectFileOnce, expectKilledIn, scenario, strays, telegramScenario } from "./crash-kit.ts";

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

/** Which post can be there twice, where the network cannot be asked. */
test("the same with `first: stand-in`: only the mark is ever there twice", { timeout: MATRIX_MS }, async () => {
  const only = check(true, { inbound: 3, ran: 1 }, (one) => one === "…");
  const matrix = await crashMatrix({ ...scenario({ FIRST: "stand-in" }), check: only, slack: 20 });
  expect(matrix.reference.result.seen).toHaveLength(7);
  expectCovered(matrix, 30);
});

test.each(["create:1", "create:3", "create:5"])(
  "killed when a network that cannot be asked has done %s, which is a stand-in: that is there twice, and all else once",
  { timeout: MATRIX_MS },
  (KILL_IN) => expectTwice({ FIRST: "stand-in", KILL_IN }, () => "…"),
);

// Nothing is shown before its end, so Ada asks for what ends by itself.
const WHOLE = { FIRST: "whole", ACTS: "pair" };

test(
  "answers that come whole, killed after every commit: a whole one is there twice",
  { timeout: MATRIX_MS },
  async () => {
    const whole = check(true, { inbound: 2, ran: 0 }, (one, known) => known.includes(one));
    const matrix = await crashMatrix({ ...scenario(WHOLE), check: whole, slack: 20 });
    expect(matrix.reference.result.seen).toEqual(["re: one", "re: two"]);
    expectCovered(matrix, 10);
  },
);

test.each([
  ["create:1", 0],
  ["create:2", 1],
])(
  "killed when a network that cannot be asked has done %s, which is a whole answer: that is there twice",
  { timeout: MATRIX_MS },
  (KILL_IN, at) => expectTwice({ ...WHOLE, KILL_IN }, (seen) => seen[at]),
);

async function expectTwice(
  { KILL_IN, ...more }: Readonly<Record<string, string>> & { readonly KILL_IN: string },
  twice: (seen: readonly string[]) => string | undefined,
): Promise<void> {
  for (const open of [scenario, telegramScenario]) {
    const reference = await crashRun({ ...open(more), deaths: [] });
    const died = { when: (child: Program) => child.exited };
    const { result } = await crashRun({ ...open({ ...more, KILL_IN }), deaths: [died] });
    const { seen } = reference.result;
    expect(strays(result.seen, seen)).toEqual([twice(seen)]);
    expect(result.deliveries.filter(({ maybeTwice }) => Boolean(maybeTwice))).toHaveLength(1);
  }
}

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
