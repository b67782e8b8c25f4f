import { crashMatrix, crashRun, type CrashOutcome, type CrashScenario } from "perdure/testing";
import { expect, test } from "vitest";
import { allFacts, env, every, expectCovered, MATRIX_MS, ofType } from "../crash/drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";
import type { MessengerLook } from "./crash-program.ts";

const program = await bundleProgram(new URL("./crash-program.ts", import.meta.url));

function scenario(more: Readonly<Record<string, string>> = {}): CrashScenario<MessengerLook> {
  return {
    program,
    env: { ...env, ...more },
    async finish(child) {
      await child.send({ type: "look" });
      return (await child.waitFor(({ type }) => type === "look")) as MessengerLook;
    },
    timeoutMs: 60_000,
  };
}

/** What Ada must see, whatever happened: the same messages in the same order. @returns what else stands there */
function strays(seen: readonly string[], expected: readonly string[]): string[] {
  let at = 0;
  const others: string[] = [];
  for (const [i, text] of seen.entries()) {
    // Of two that are alike, the later one is the one that lives on.
    if (text === expected[at] && seen[i + 1] !== text) at++;
    else others.push(text);
  }
  expect(at, `seen: ${JSON.stringify(seen, null, 1)}`).toBe(expected.length);
  return others;
}

function check(mayRepeat: boolean) {
  return (outcome: CrashOutcome<MessengerLook>) => {
    const { result } = outcome.after;
    const expected = outcome.reference.result;
    expect(ofType(allFacts(outcome), "failed")).toEqual([]);
    const others = strays(result.seen, expected.seen);
    // What may be there twice is the beginning of something, at most one per kill, and the rows say so.
    expect(others.length).toBeLessThanOrEqual(mayRepeat ? outcome.before.lives.length : 0);
    for (const one of others) expect(expected.seen.some((text) => text.startsWith(one))).toBe(true);
    const repeated = result.deliveries.filter(({ maybeTwice }) => Boolean(maybeTwice)).length;
    expect(repeated).toBeGreaterThanOrEqual(others.length > 0 ? 1 : 0);
    expect(repeated).toBeLessThanOrEqual(mayRepeat ? outcome.before.lives.length : 0);
    expect(result.deliveries.every(({ state }) => state === "done")).toBe(true);
    // One turn each, and one that went on after the yes.
    expect(result.inbound).toBe(3);
    expect(result.turns).toBe(expected.turns);
    expect(result.ran).toBe(1);
    expect(result.calls).toBeLessThanOrEqual(expected.calls + outcome.before.lives.length);
  };
}

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

test.each(["create:1", "create:3", "create:4", "create:5", "edit:1", "edit:2"])(
  "killed when the network has done %s and nobody has heard of it",
  { timeout: MATRIX_MS },
  async (KILL_IN) => {
    for (const FINDS of ["1", "0"]) {
      const died = { when: (child: { exited: Promise<unknown> }) => child.exited };
      const reference = await crashRun({ ...scenario({ FINDS }), deaths: [] });
      const run = await crashRun({ ...scenario({ FINDS, KILL_IN }), deaths: [died] });
      const others = strays(run.result.seen, reference.result.seen);
      expect(others.length).toBeLessThanOrEqual(FINDS === "0" && KILL_IN.startsWith("create") ? 1 : 0);
      for (const one of others) expect(reference.result.seen.some((text) => text.startsWith(one))).toBe(true);
      expect(run.result.deliveries.filter(({ maybeTwice }) => Boolean(maybeTwice)).length).toBe(others.length);
      expect(run.result.ran).toBe(1);
    }
  },
);
