import { crashMatrix } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn } from "../chat/client.ts";
import { expectCovered, MATRIX_MS, thinned } from "../crash/drive.ts";
import { expectKept, oneMessage, type ThinkResult } from "./crash-drive.ts";

const tries = ({ ledger }: ThinkResult) =>
  ledger.toReversed().map(({ step, modelIndex, status, errorClass }) => ({ step, modelIndex, status, errorClass }));

test(
  "a retry after a rate limit, killed after every commit: one answer, and each try is on the books",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix<ThinkResult>({
      ...oneMessage("limited"),
      async check(outcome) {
        await expectKept(outcome);
        // A refusal that is on the books is a try that was made.
        const rows = outcome.after.result.ledger.toReversed();
        expect(rows.map(({ attempt }) => attempt)).toEqual(rows.map((_, at) => at + 1));
      },
      points: thinned(3),
      slack: 4,
    });
    expectCovered(matrix, 6, 3);
    const { result } = matrix.reference;
    expect(textIn(result.messages[1])).toBe("Here it is.");
    expect(tries(result)).toEqual([
      { step: 0, modelIndex: 0, status: "error", errorClass: "rate_limit" },
      { step: 0, modelIndex: 0, status: "ok", errorClass: null },
    ]);
  },
);

test(
  "a second model after a fatal error of the first, killed after every commit: the first is not asked again",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix<ThinkResult>({
      ...oneMessage("note", { FALLBACK: "1" }),
      async check(outcome) {
        await expectKept(outcome);
        const { result } = outcome.after;
        const failed = result.ledger.filter(({ status }) => status === "error").length;
        expect(failed).toBe(outcome.reference.result.brokenCalls);
        expect(result.brokenCalls).toBeLessThanOrEqual(failed + outcome.before.lives.length);
      },
      slack: 4,
    });
    expectCovered(matrix, 8);
    const { result } = matrix.reference;
    expect(textIn(result.messages[1])).toBe("Looking. Noted it.");
    expect(result.brokenCalls).toBe(2);
    expect(tries(result)).toEqual([
      { step: 0, modelIndex: 0, status: "error", errorClass: "fatal" },
      { step: 0, modelIndex: 1, status: "ok", errorClass: null },
      { step: 1, modelIndex: 0, status: "error", errorClass: "fatal" },
      { step: 1, modelIndex: 1, status: "ok", errorClass: null },
    ]);
  },
);
