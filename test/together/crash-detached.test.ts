import { crashMatrix } from "perdure/testing";
import type { CrashOutcome } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn } from "../chat/client.ts";
import { expectCovered, isWhole, thinned } from "../crash/drive.ts";
import { expectKept, TREE_MS, type TreeResult, unwatched, watched } from "./crash-drive.ts";

const TOLD = "The background work of Helper is done. It says:\n\nNoted.";

test("the end of a run reaches a synchronous onFinish exactly once", { timeout: TREE_MS }, async () => {
  const check = (outcome: CrashOutcome<TreeResult>) => {
    expectKept(outcome);
    expect(outcome.after.result.delivered).toEqual([{ run: "bg-sync", status: "completed" }]);
  };
  const matrix = await crashMatrix<TreeResult>({
    ...unwatched({ type: "background", how: "sync" }),
    points: thinned(3),
    check,
    slack: 8,
  });
  expectCovered(matrix, 10, 3);
});

test("the end of a run reaches an asynchronous onFinish until it returns", { timeout: TREE_MS }, async () => {
  const check = (outcome: CrashOutcome<TreeResult>) => {
    expectKept(outcome);
    const { delivered } = outcome.after.result;
    expect(new Set(delivered.map(({ run, status }) => `${run} ${status}`))).toEqual(new Set(["bg-async completed"]));
    expect(delivered.length).toBeLessThanOrEqual(1 + outcome.before.lives.length);
  };
  // Until its end it is no different from the one above.
  const points = (commits: number) => thinned(1, 2)(commits).filter((n) => n > commits / 2);
  const scenario = unwatched({ type: "background", how: "async" });
  const matrix = await crashMatrix<TreeResult>({ ...scenario, check, points, slack: 8 });
  expect(matrix.killed.length).toBeGreaterThan(isWhole ? 5 : 2);
});

test(
  "a tool that runs in the background, killed after every commit: one turn tells the model of its end",
  { timeout: TREE_MS },
  async () => {
    const matrix = await crashMatrix<TreeResult>({
      ...watched("later"),
      points: thinned(5, 2),
      check: expectKept,
      slack: 12,
    });
    expectCovered(matrix, 20, 5);
    const [talk] = matrix.reference.result.agents;
    expect(talk?.messages.map((message) => textIn(message))).toEqual([
      "later",
      "Soon. It is under way.",
      TOLD,
      "Good to know.",
    ]);
  },
);
