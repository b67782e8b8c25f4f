import { crashMatrix } from "perdure/testing";
import type { CrashMatrixOptions, CrashOutcome } from "perdure/testing";
import { expect, test } from "vitest";
import {
  ackedIn,
  allFacts,
  env,
  every,
  expectCovered,
  laterLives,
  MATRIX_MS,
  ofType,
  remote,
  untilIdle,
} from "./drive.ts";
import { expectFibersKeepTheirWord, openIn, stepsOf } from "./fiber-check.ts";
import type { FiberLeft } from "./fiber-check.ts";
import { bundleProgram } from "../support/bundle-program.ts";

type Result = readonly FiberLeft[];

/** Each is told by its name what to do when its function has died with the process. */
const STARTED = ["throws first", "carried on", "asks around", "by hand"] as const;

const scenario: Omit<CrashMatrixOptions<Result>, "again" | "points"> = {
  program: await bundleProgram(new URL("./fiber-program.ts", import.meta.url)),
  env,
  async drive(child) {
    const runner = remote(child, "Runner");
    for (const name of STARTED) await runner.as(name).call("start", name);
    await runner.as("unkept").call("begin", "unkept");
    await runner.call("release");
  },
  async finish(child, before) {
    await untilIdle(child);
    const runner = remote(child, "Runner");
    const byHand = (await runner.as("before").call<Result>("result")).find(({ name }) => name === "by hand");
    if (byHand?.status === "interrupted") {
      await runner.as("resolve").call("resolveFiber", byHand.id, { status: "error", error: "given up" });
    }
    // A client that was told of a key and asks again gets the same fiber.
    for (const name of ackedIn(before.flatMap((life) => life.facts)).keys()) {
      if (STARTED.some((one) => one === name)) await runner.as(`${name} again`).call("start", name);
    }
    return runner.call<Result>("result");
  },
  check,
};

function check(outcome: CrashOutcome<Result>): void {
  const facts = allFacts(outcome);
  const told = ackedIn(outcome.before.facts);
  const again = ackedIn(outcome.after.facts);
  expectFibersKeepTheirWord(outcome);
  for (const name of STARTED) {
    const { id } = (told.get(name) ?? {}) as { id?: string };
    if (id === undefined) continue;
    expect(again.get(`${name} again`)).toEqual({ id, accepted: false });
    checkEnd(outcome, id, name);
  }
  // Fibers of runFiber leave no record; those that were cut are told of once.
  expect(outcome.after.result.filter(({ kind }) => kind === "run")).toEqual([]);
  const unkept = told.get("unkept");
  if (unkept !== undefined && wasCut(outcome, String(unkept))) {
    expect(ofType(facts, "recovered").filter(({ id }) => id === unkept)).not.toEqual([]);
  }
}

function checkEnd(outcome: CrashOutcome<Result>, id: string, name: string): void {
  const facts = allFacts(outcome);
  const fiber = outcome.after.result.find((one) => one.id === id);
  const hooks = ofType(facts, "recovered").filter((fact) => fact.id === id);
  if (!wasCut(outcome, id)) {
    expect(fiber, name).toMatchObject({ status: "completed", result: "held", snapshot: { by: name } });
    return expect(hooks, `the hook for ${name}`).toEqual([]);
  }
  const attempts = hooks.map(({ attempt }) => Number(attempt));
  // A call is counted before it is made, so a kill in between leaves a gap.
  expect(attempts, `calls of the hook for ${name}`).toEqual([...new Set(attempts)].sort((a, b) => a - b));
  const began = ofType(facts, "began").some((fact) => fact.id === id);
  if (began) expect(hooks.at(-1)?.snapshot, "the last checkpoint").toEqual({ by: name });
  if (name === "throws first") {
    expect(attempts.at(-1)).toBeGreaterThanOrEqual(2);
    expect(fiber).toMatchObject({ status: "completed", snapshot: { carried: true } });
  }
  if (name === "carried on") {
    expect(fiber?.status).toBe("completed");
    expect(stepsOf(facts, `rest of ${id}`), "carried on exactly once").toEqual([0, 1, 2]);
  }
  if (name === "asks around") expect(fiber).toMatchObject({ status: "aborted", error: "too old" });
  if (name === "by hand") expect(fiber).toMatchObject({ status: "error", error: "given up" });
}

/** Whether a later life found it without an end. */
function wasCut(outcome: CrashOutcome<Result>, id: string): boolean {
  return laterLives(outcome).some((facts) => openIn(facts).includes(id));
}

test("functions as fibers, killed after every commit: the hook decides, once", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix(scenario);
  expectCovered(matrix, 20);
  expect(matrix.reference.result.map(({ status }) => status)).toEqual(STARTED.map(() => "completed"));
});

test.for([1, 3, 5])(
  "functions as fibers, killed again after commit %i of the next life",
  { timeout: MATRIX_MS },
  async (commit) => {
    const { killed } = await crashMatrix({ ...scenario, again: [commit], points: every(5, commit) });
    expect(killed).not.toEqual([]);
  },
);
