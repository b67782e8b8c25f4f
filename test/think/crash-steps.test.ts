import { crashMatrix, type CrashOutcome } from "perdure/testing";
import { expect, test } from "vitest";
import { toolParts } from "../../src/message/types.ts";
import { allFacts, every, expectCovered, MATRIX_MS } from "../crash/drive.ts";
import { expectKept, oneMessage, type ThinkResult } from "./crash-drive.ts";

const ALL = ["charge", "fetch", "mail", "note"];

/** A step that was stored never runs again, and one that runs again does so under its key. */
async function expectSteps(outcome: CrashOutcome<ThinkResult>): Promise<void> {
  await expectKept(outcome);
  const stored = new Set<string>();
  for (const { facts } of [...outcome.before.lives, outcome.after]) {
    for (const { type, steps } of facts)
      if (type === "woken") for (const { step } of steps as readonly { step: string }[]) stored.add(step);
    const ran = facts.filter(({ type }) => type === "stepped").map(({ step }) => String(step));
    expect(ran.filter((step) => stored.has(step))).toEqual([]);
    expect(new Set(ran).size, "each step once in a life").toBe(ran.length);
  }
  const keys = new Map<unknown, Set<unknown>>();
  for (const { type, step, key } of allFacts(outcome))
    if (type === "stepped") keys.set(step, (keys.get(step) ?? new Set()).add(key));
  for (const [step, used] of keys) expect(used.size, `keys of ${String(step)}`).toBe(1);
  // What is done needs no steps any more.
  expect(outcome.after.result.steps).toEqual([]);
}

test(
  "a tool of four steps, killed after every commit: it goes on behind the last step that was stored",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix<ThinkResult>({ ...oneMessage("steps"), check: expectSteps, slack: 6 });
    expectCovered(matrix, 12);
    const [part] = matrix.reference.result.messages.flatMap((message) => toolParts(message));
    expect(part?.output).toEqual(["fetch done", "charge done", "mail done", "note done"]);
    const ran = matrix.reference.facts.filter(({ type }) => type === "stepped").map(({ step }) => String(step));
    expect(ran.toSorted()).toEqual(ALL);
  },
);

test("the same, killed again while it goes on", { timeout: MATRIX_MS }, async () => {
  const scenario = { ...oneMessage("steps"), check: expectSteps, slack: 6 };
  const matrix = await crashMatrix<ThinkResult>({ ...scenario, again: [2], points: every(3, 1) });
  expect(matrix.killed.length).toBeGreaterThan(1);
});
