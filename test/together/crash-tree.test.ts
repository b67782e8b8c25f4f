import { crashMatrix, crashRun } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn } from "../chat/client.ts";
import { expectCovered, thinned } from "../crash/drive.ts";
import { seedCount } from "../support/seed-count.ts";
import { random } from "../think/interleave-random.ts";
import { expectKept, inTurns, TREE_MS, type TreeResult, unwatched, watched } from "./crash-drive.ts";

const SEED = 7;
const PAIRS = seedCount(10, 4);
const asks = unwatched({ type: "submit", text: "dig" });

test("a run of two layers, watched, killed after every commit of any agent", { timeout: TREE_MS }, async () => {
  const matrix = await crashMatrix<TreeResult>({ ...watched("dig"), points: thinned(8), check: expectKept, slack: 12 });
  expectCovered(matrix, 30, 8);
  const { agents, calls, ran } = matrix.reference.result;
  expect(agents.map(({ messages }) => messages.map((message) => textIn(message)))).toEqual([
    ["dig", "On it. It is done."],
    ["dig", "Asking. They found it."],
    ["dig", "Digging. Gold here."],
  ]);
  expect(calls).toEqual({ Talk: 2, Helper: 2, Digger: 2 });
  expect(ran.map(({ name }) => name)).toEqual(["spade"]);
});

test("the same with nobody connected, killed after every commit", { timeout: TREE_MS }, async () => {
  const matrix = await crashMatrix<TreeResult>({ ...asks, points: thinned(9, 3), check: expectKept, slack: 12 });
  expectCovered(matrix, 36, 9);
});

test(`killed twice in a row, at ${PAIRS} pairs of commits that chance chose`, { timeout: TREE_MS }, async () => {
  const { last, result } = await crashRun<TreeResult>({ ...asks, deaths: [] });
  const reference = { facts: last.facts, commits: last.commits, result };
  const { int } = random(SEED);
  const pairs = Array.from({ length: PAIRS }, () => [1 + int(last.commits), 1 + int(last.commits / 2)] as const);
  let killed = 0;
  await inTurns(pairs, async ([first, second]) => {
    const run = await crashRun<TreeResult>({ ...asks, deaths: [{ commit: first }, { commit: second }] });
    killed += run.died.length;
    const facts = run.died.flatMap((life) => life.facts);
    const after = { facts: run.last.facts, commits: run.last.commits, result: run.result };
    try {
      expectKept({ n: first, before: { facts, lives: run.died }, after, reference });
    } catch (error) {
      throw new Error(`Killed after commit ${first}, and ${second} of the next life.`, { cause: error });
    }
  });
  expect(killed).toBeGreaterThan(PAIRS);
});
