import { crashMatrix } from "perdure/testing";
import type { CrashMatrixOptions, CrashOutcome } from "perdure/testing";
import { expect, test } from "vitest";
import { ackedIn, allFacts, env, every, expectCovered, MATRIX_MS, remote, untilIdle } from "./drive.ts";
import { expectAttemptsCountUp, expectRunsAreOpen, ranIn, rowsOf } from "./work-check.ts";
import type { WorkResult } from "./work-check.ts";
import { bundleProgram } from "../support/bundle-program.ts";

interface Plan {
  readonly when: "delayed" | "date" | "cron" | "every";
  readonly callback: "sync" | "async";
  /** How often it comes before it cancels itself. */
  readonly times: number;
}

const ONCE: readonly Plan[] = [
  { when: "delayed", callback: "sync", times: 1 },
  { when: "delayed", callback: "async", times: 1 },
  { when: "date", callback: "sync", times: 1 },
  { when: "date", callback: "async", times: 1 },
];
const RECURRING: readonly Plan[] = [
  { when: "cron", callback: "sync", times: 2 },
  { when: "cron", callback: "async", times: 2 },
  { when: "every", callback: "sync", times: 2 },
  { when: "every", callback: "async", times: 2 },
];

const keyOf = ({ when, callback }: Plan) => `${when} ${callback}`;

const program = await bundleProgram(new URL("./work-program.ts", import.meta.url));

function scenario(plans: readonly Plan[]): CrashMatrixOptions<WorkResult> {
  return {
    program,
    env,
    async drive(child) {
      const worker = remote(child, "Worker");
      await worker.call("setUp");
      for (const plan of plans) await worker.as(keyOf(plan)).call("plan", plan.when, plan.callback, keyOf(plan));
      const id = await worker.as("taken back").call("planLate", "taken back");
      await worker.call("cancelSchedule", id);
    },
    async finish(child) {
      await untilIdle(child);
      return remote(child, "Worker").call<WorkResult>("result");
    },
    check: (outcome) => check(outcome, plans),
    // On a slow machine the late one may run before it is taken back.
    slack: 2,
  };
}

function check(outcome: CrashOutcome<WorkResult>, plans: readonly Plan[]): void {
  const { result } = outcome.after;
  const told = ackedIn(outcome.before.facts);
  const ran = ranIn(allFacts(outcome));
  expectRunsAreOpen(outcome);
  expectAttemptsCountUp(outcome);
  for (const plan of plans) {
    const key = keyOf(plan);
    const rows = rowsOf(result, key);
    if (told.has(key) || rows.length > 0) expect(rows, key).toHaveLength(plan.times);
    if (plan.callback === "sync") expect(rows, `${key} takes effect once`).toEqual(rows.map(() => 1));
    const ids = new Set(ran.filter((run) => run.key === key).map(({ id }) => id));
    if (told.has(key)) expect([...ids], `the id of ${key}`).toEqual([told.get(key)]);
  }
  if (told.get("cancelSchedule") === true) expect(rowsOf(result, "taken back")).toEqual([]);
}

test("schedules that come once, killed after every commit", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix(scenario(ONCE));
  expectCovered(matrix, 18);
  expect(matrix.reference.result.runs.map(({ key }) => key).sort()).toEqual(ONCE.map(keyOf).sort());
});

test("schedules that come again, killed after every commit", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix(scenario(RECURRING));
  expectCovered(matrix, 25);
  expect(matrix.reference.result.runs).toHaveLength(RECURRING.length * 2);
});

test("schedules of all kinds, killed again in the next life", { timeout: MATRIX_MS }, async () => {
  const options = scenario([...ONCE, ...RECURRING]);
  const { killed } = await crashMatrix({ ...options, again: [3], points: every(5, 1) });
  expect(killed).not.toEqual([]);
});
