import { crashMatrix, type CrashOutcome, type CrashScenario, type Program } from "perdure/testing";
import { expect, test } from "vitest";
import { CUT_OFF } from "../../src/context/compactor.ts";
import { allFacts, env, every, expectCovered, MATRIX_MS, ofType, thinned } from "../crash/drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";
import type { CrashCommand, CrashLook } from "./crash-program.ts";

const program = await bundleProgram(new URL("./crash-program.ts", import.meta.url));

/** Told again in every life, as a queue would: it is said once all the same. */
const scenario: CrashScenario<CrashLook> = {
  program,
  env,
  async finish(child: Program) {
    await child.send({ type: "tell" } satisfies CrashCommand);
    return (await child.waitFor(({ type }) => type === "look")) as CrashLook;
  },
};

function check(outcome: CrashOutcome<CrashLook>): void {
  const { result } = outcome.after;
  const { result: whole } = outcome.reference;
  expect(ofType(allFacts(outcome), "failed")).toEqual([]);
  expect(result.texts).toEqual(whole.texts);
  expect(result.shown).toEqual(whole.shown);
  expect(result.openCalls).toBe(0);
  const of = (status: string) => result.compactions.filter((one) => one.status === status);
  expect(of("done")).toEqual(whole.compactions.filter(({ status }) => status === "done"));
  expect(of("started")).toEqual([]);
  const own = (rows: CrashLook["compactions"]) =>
    rows.filter(({ status, error }) => status === "failed" && error !== CUT_OFF);
  expect(own(result.compactions)).toEqual(own(whole.compactions));
  expect(of("undone")).toEqual(whole.compactions.filter(({ status }) => status === "undone"));
}

/** A life that goes on with a turn tries once more to summarise what was left out, and may succeed before others would. */
function checkRetried(outcome: CrashOutcome<CrashLook>): void {
  const { result } = outcome.after;
  const { result: whole } = outcome.reference;
  const summaries = ({ compactions }: CrashLook) =>
    compactions.filter(({ kind, status }) => kind === "summary" && status === "done").length;
  if (summaries(result) === summaries(whole)) return check(outcome);
  expect(ofType(allFacts(outcome), "failed")).toEqual([]);
  expect(result.texts).toEqual(whole.texts);
  expect(summaries(result)).toBe(summaries(whole) + 1);
  // The note, and then what the other showed too.
  expect(result.shown.slice(1)).toEqual(whole.shown.slice(1 - result.shown.length));
  expect(result.openCalls).toBe(0);
  expect(result.compactions.filter(({ status }) => status === "started")).toEqual([]);
}

test(
  "a conversation that is compacted between and within turns, killed after every commit: the model reads the same",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix({ ...scenario, check, points: thinned(7), slack: 10 });
    expectCovered(matrix, 36, 7);
    const { compactions, texts } = matrix.reference.result;
    expect(compactions.filter(({ kind }) => kind === "summary").length).toBeGreaterThan(1);
    expect(compactions.filter(({ kind }) => kind === "prune").length).toBeGreaterThan(0);
    expect(new Set(compactions.map(({ status }) => status))).toEqual(new Set(["done"]));
    expect(texts.at(-1)).toBe("Yes, done.");
  },
);

test("killed again in later lives", { timeout: MATRIX_MS }, async () => {
  const { killed } = await crashMatrix({ ...scenario, check, again: [2, 1], points: every(8, 3), slack: 10 });
  expect(killed.length).toBeGreaterThan(1);
});

test(
  "what was left out without a summary, killed after every commit: the same is left out, and summarised in the end",
  { timeout: MATRIX_MS },
  async () => {
    const silent = { ...scenario, env: { ...env, NO_SUMMARY: "1" } };
    const matrix = await crashMatrix({ ...silent, check: checkRetried, points: thinned(7), slack: 10 });
    const { compactions, texts } = matrix.reference.result;
    expect(texts.at(-1)).toContain("Yes, done");
    const kinds = compactions.toReversed().map(({ kind, status, trigger }) => `${kind} ${status} ${trigger}`);
    expect(kinds[0]).toBe("summary failed error");
    expect(kinds.filter((one) => one.startsWith("truncate")).length).toBeGreaterThan(1);
    expect(kinds).toContain("summary done retry");
  },
);
