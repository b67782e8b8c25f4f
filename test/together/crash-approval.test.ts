import { crashMatrix, crashRun } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn } from "../chat/client.ts";
import { expectCovered, thinned } from "../crash/drive.ts";
import {
  ask,
  expectKept,
  lookAt,
  resultIn,
  tell,
  TREE_MS,
  type TreeResult,
  untilAnswered,
  watched,
} from "./crash-drive.ts";

test("a child that asks a person, killed after every commit", { timeout: TREE_MS }, async () => {
  const matrix = await crashMatrix<TreeResult>({
    ...watched("ask"),
    points: thinned(4, 3),
    check: expectKept,
    slack: 12,
  });
  expectCovered(matrix, 24, 4);
  const { agents, ran } = matrix.reference.result;
  expect(textIn(agents[1]?.messages[1])).toBe("May I? It is sent.");
  expect(ran.map(({ name }) => name)).toEqual(["send"]);
});

test("what a child asked is answered two lives later", { timeout: TREE_MS }, async () => {
  const scenario = watched("ask");
  const run = await crashRun<TreeResult>({
    ...scenario,
    drive: (child) => ask(child, "ask"),
    resume: (child) => tell(child, { type: "release" }),
    async finish(child, before) {
      const open = await lookAt(child);
      expect(open.agents[1]?.questions).toHaveLength(1);
      expect(open.agents[0]?.runs).toMatchObject([{ status: "running" }]);
      if (before.length < 2) {
        await child.kill();
        throw new Error("Killed while the question is open.");
      }
      await untilAnswered(child);
      return resultIn(child);
    },
    deaths: [{ when: (child) => child.exited }, { when: (child) => child.exited }],
  });
  const { calls, agents, ran } = run.result;
  expect(calls).toEqual({ Talk: 2, Helper: 2, Digger: 0 });
  expect(ran.map(({ name }) => name)).toEqual(["send"]);
  expect(agents[0]?.turns).toMatchObject([{ status: "completed", attempts: 3 }]);
  expect(agents[0]?.runs).toMatchObject([{ status: "completed", output: '"It is sent."' }]);
});
