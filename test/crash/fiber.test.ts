import { crashMatrix } from "perdure/testing";
import type { CrashMatrixOptions, CrashOutcome } from "perdure/testing";
import { expect, test } from "vitest";
import { ackedIn, allFacts, env, every, expectCovered, laterLives, MATRIX_MS, remote, untilIdle } from "./drive.ts";
import { expectFibersKeepTheirWord, stepsOf } from "./fiber-check.ts";
import type { FiberLeft } from "./fiber-check.ts";
import { bundleProgram } from "../support/bundle-program.ts";

type Result = readonly FiberLeft[];

const scenario: Omit<CrashMatrixOptions<Result>, "again" | "points"> = {
  program: await bundleProgram(new URL("./fiber-program.ts", import.meta.url)),
  env,
  async drive(child) {
    const runner = remote(child, "Runner");
    for (const method of ["steps", "flaky", "doomed", "hang"]) await runner.as(method).call("spawn", method, method);
    await runner.as("cancel hang").call("cancelFiberByKey", "hang", "changed my mind");
    await runner.as("cancel unborn").call("spawnAndCancel", "unborn");
  },
  async finish(child) {
    await untilIdle(child);
    const runner = remote(child, "Runner");
    // The same key again: the one that is there, whatever became of it.
    await runner.as("steps again").call("spawn", "steps", "steps");
    await untilIdle(child);
    return runner.call<Result>("result");
  },
  check,
};

function check(outcome: CrashOutcome<Result>): void {
  const facts = allFacts(outcome);
  const told = ackedIn(outcome.before.facts);
  const fiberOf = (key: string) => outcome.after.result.find((fiber) => fiber.key === key);
  expectFibersKeepTheirWord(outcome);
  for (const key of ["steps", "flaky", "doomed", "hang"]) {
    if (told.has(key)) expect(fiberOf(key)?.id, `the id of ${key}`).toBe(told.get(key));
  }
  expect(ackedIn(outcome.after.facts).get("steps again")).toBe(fiberOf("steps")?.id);
  // A kill comes right after a checkpoint is committed, so no step is lost and none runs twice.
  expect(fiberOf("steps")).toMatchObject({ status: "completed", result: "steps done", snapshot: { done: 3 } });
  expect(stepsOf(facts, "steps")).toEqual([0, 1, 2]);
  if (told.has("flaky")) {
    expect(fiberOf("flaky")).toMatchObject({ status: "completed", result: "flaky done" });
    expect(stepsOf(facts, "flaky")).toEqual([0, 1, 2]);
  }
  if (told.has("doomed")) expect(fiberOf("doomed")).toMatchObject({ status: "error", error: "never" });
  checkCancelled(outcome, "hang");
  checkCancelled(outcome, "unborn");
}

/** Once its cancel was told, a fiber never runs again. */
function checkCancelled(outcome: CrashOutcome<Result>, key: string): void {
  const told = ackedIn(outcome.before.facts).get(`cancel ${key}`);
  if (told === undefined) return;
  expect(told).toBe(true);
  const fiber = outcome.after.result.find((one) => one.key === key);
  expect(fiber).toMatchObject({ status: "aborted", error: "changed my mind" });
  expect(laterLives(outcome).flatMap((facts) => stepsOf(facts, key))).toEqual([]);
}

test(
  "spawned fibers, killed after every commit: they go on from their checkpoint, and cancel means cancel",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix(scenario);
    expectCovered(matrix, 18);
    const statuses = matrix.reference.result.map(({ key, status }) => `${key} ${status}`).sort();
    expect(statuses).toEqual(["doomed error", "flaky completed", "hang aborted", "steps completed", "unborn aborted"]);
  },
);

test.for([1, 2])(
  "spawned fibers, killed again after commit %i of the next life",
  { timeout: MATRIX_MS },
  async (commit) => {
    const { killed } = await crashMatrix({ ...scenario, again: [commit], points: every(5, commit) });
    expect(killed).not.toEqual([]);
  },
);
