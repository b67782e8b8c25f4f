import { crashMatrix } from "perdure/testing";
import type { CrashMatrixOptions, CrashOutcome } from "perdure/testing";
import { expect, test } from "vitest";
import { ackedIn, allFacts, env, every, expectCovered, MATRIX_MS, remote, untilIdle } from "./drive.ts";
import { expectAttemptsCountUp, expectRunsAreOpen, ranIn, rowsOf } from "./work-check.ts";
import type { WorkResult } from "./work-check.ts";
import { bundleProgram } from "../support/bundle-program.ts";

/** Each is the callback and the key of one item, in the order of the queue. */
const ITEMS = ["held", "sync", "async", "flaky", "asyncFlaky", "doomed"] as const;

interface QueueResult extends WorkResult {
  readonly failed?: { readonly status?: string; readonly error?: string };
}

const scenario: Omit<CrashMatrixOptions<QueueResult>, "again" | "points"> = {
  program: await bundleProgram(new URL("./work-program.ts", import.meta.url)),
  env,
  async drive(child) {
    const worker = remote(child, "Worker");
    await worker.call("setUp");
    for (const key of ITEMS) await worker.as(key).call("add", key, key);
    const id = await worker.as("taken back").call("add", "sync", "taken back");
    await worker.call("dequeue", id);
    await worker.call("release");
  },
  async finish(child, before) {
    await untilIdle(child);
    const doomed = ackedIn([...before.flatMap((life) => life.facts), ...child.facts]).get("doomed");
    const worker = remote(child, "Worker");
    const failed = doomed === undefined ? undefined : await worker.call<QueueResult["failed"]>("item", doomed);
    return { ...(await worker.call<WorkResult>("result")), failed };
  },
  check,
};

function check(outcome: CrashOutcome<QueueResult>): void {
  const { result } = outcome.after;
  const told = ackedIn(outcome.before.facts);
  expectRunsAreOpen(outcome);
  expectAttemptsCountUp(outcome);
  for (const key of ITEMS) {
    if (key === "doomed") continue;
    const [rows = 0, ...others] = rowsOf(result, key);
    expect(others, `${key} has one occurrence`).toEqual([]);
    if (told.has(key)) expect(rows, `${key} was accepted`).toBeGreaterThan(0);
    if (key === "sync" || key === "flaky") expect(rows, `${key} takes effect once`).toBeLessThanOrEqual(1);
  }
  // What a throw undoes is undone in memory and in every table.
  expect(rowsOf(result, "doomed")).toEqual([]);
  expect(result.state.n).toBe(rowsOf(result, "flaky").length);
  if (told.has("doomed")) expect(result.failed).toEqual({ status: "failed", error: "never" });
  if (told.has("dequeue")) expect(rowsOf(result, "taken back")).toEqual([]);
  const order = [...new Set(ranIn(allFacts(outcome)).map(({ key }) => key))];
  expect(order).toEqual([...ITEMS, "taken back"].filter((key) => order.includes(key)));
}

test(
  "a queue, killed after every commit: each accepted item runs, in order, and takes effect once",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix(scenario);
    expectCovered(matrix, 30);
    expect(matrix.reference.result.runs.map(({ key }) => key)).toEqual(ITEMS.filter((key) => key !== "doomed"));
  },
);

test.for([1, 3])("a queue, killed again after commit %i of the next life", { timeout: MATRIX_MS }, async (commit) => {
  const { killed } = await crashMatrix({ ...scenario, again: [commit], points: every(5, commit) });
  expect(killed).not.toEqual([]);
});
