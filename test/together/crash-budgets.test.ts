import { crashMatrix, type CrashOutcome } from "perdure/testing";
import { expect, test } from "vitest";
import { env, expectCovered, expectNoFailure, MATRIX_MS, thinned } from "../crash/drive.ts";
import { type TreeResult, unwatched } from "./crash-drive.ts";
import { expectPaid } from "./crash-paid.ts";

/** Room for all calls of the run, but not for one that was cut, and charged in full, and the same again. */
const MAX_TOKENS = 10_000;
const BUDGETS = JSON.stringify({ agent: { maxTokens: MAX_TOKENS } });
const asks = { ...unwatched({ type: "submit", text: "note" }), env: { ...env, BUDGETS } };

function expectWithin(outcome: CrashOutcome<TreeResult>): void {
  const { result } = outcome.after;
  expectNoFailure(outcome);
  expectPaid(result);
  const [top] = result.agents;
  expect(top?.totals.tokens).toBeLessThanOrEqual(MAX_TOKENS);
  // What was cut took the room of what came after it: that ended, and says why.
  const wasCut = top?.ledger.some(({ status }) => status === "cut") === true;
  const fits = (status: string, why: boolean) => status === "completed" || (wasCut && why);
  for (const { turns, runs } of result.agents) {
    expect(
      turns.filter(({ status, error }) => !fits(status, /budget of (this agent|Talk "one")/.test(error ?? ""))),
    ).toEqual([]);
    expect(runs.filter(({ status }) => !fits(status, status === "interrupted"))).toEqual([]);
  }
}

test(
  "a run under a budget that has room for no cut call, killed after every commit: it is never passed, and nothing stays reserved",
  { timeout: 3 * MATRIX_MS },
  async () => {
    let refused = 0;
    const check = (outcome: CrashOutcome<TreeResult>) => {
      expectWithin(outcome);
      if (outcome.after.result.agents.some(({ turns }) => turns.some(({ status }) => status === "error"))) refused++;
    };
    const matrix = await crashMatrix<TreeResult>({ ...asks, check, points: thinned(1), slack: 12 });
    expectCovered(matrix, 14, 1);
    expect(matrix.reference.result.calls).toEqual({ Talk: 2, Helper: 1, Digger: 0 });
    expect(matrix.reference.result.agents[0]?.totals).toMatchObject({ calls: 3, reservedTokens: 0 });
    expect(refused).toBeGreaterThan(0);
  },
);
