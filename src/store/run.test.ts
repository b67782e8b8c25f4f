import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import {
  endRun,
  insertRun,
  type NewRun,
  openRuns,
  readRun,
  runOfTurn,
  runOfTurnId,
  setRunMilestones,
  setRunProgress,
  setRunReason,
  setRunTurns,
} from "./run.ts";
import { appendChunks, countChunks, deleteChunksOf, deleteChunks, deleteOtherChunks, readChunks } from "./stream.ts";

const run = (runId: string, turns: string, more: Partial<NewRun> = {}): NewRun => ({
  runId,
  status: "running",
  input: "null",
  messageId: "m",
  turns,
  error: null,
  startedAt: 1000,
  endedAt: null,
  ...more,
});
const end = { status: "completed", output: '"x"', summary: "x", error: null, reason: null, endedAt: 2000 } as const;

test("a run from its beginning to its end, which is the first one", async () => {
  const { host } = await probeHost();
  insertRun(host, run("b", "[]", { startedAt: 2000 }));
  insertRun(host, run("a", "[]"));
  expect(openRuns(host).map(({ runId }) => runId)).toEqual(["a", "b"]);
  setRunProgress(host, "a", '{"at":1}');
  setRunMilestones(host, "a", "[1]");
  setRunReason(host, "a", "budget-exceeded");
  expect(readRun(host, "a")).toMatchObject({ progress: '{"at":1}', milestones: "[1]", reason: "budget-exceeded" });
  endRun(host, "a", end);
  endRun(host, "a", { ...end, status: "error", error: "No." });
  setRunReason(host, "a", "no-progress");
  expect(readRun(host, "a")).toMatchObject(end);
  expect(openRuns(host).map(({ runId }) => runId)).toEqual(["b"]);
  expect(readRun(host, "c")).toBeUndefined();
});

test("a run is found by each of its turns", async () => {
  const { host } = await probeHost();
  insertRun(host, run("a", '[[1,0,"one"]]'));
  insertRun(host, run("b", '[[3,0,"three"]]'));
  setRunTurns(host, "a", '[[1,0,"one"],[12,5,"twelve"]]');
  expect([1, 2, 3, 12, 0, 5].map((turn) => runOfTurn(host, turn)?.runId)).toEqual([
    "a",
    undefined,
    "b",
    "a",
    undefined,
    undefined,
  ]);
  expect(["one", "twelve", "three", "two"].map((id) => runOfTurnId(host, id)?.runId)).toEqual([
    "a",
    "a",
    "b",
    undefined,
  ]);
});

test("chunks of a run's turns are kept; those of others go", async () => {
  const { host } = await probeHost();
  insertRun(host, run("a", '[[1,0,"one"],[3,2,"three"]]'));
  for (const turn of [1, 2, 3, 4]) appendChunks(host, turn, 0, [`"${turn}"`, '"x"']);
  const left = () => [1, 2, 3, 4].map((turn) => countChunks(host, turn));
  deleteChunks(host, 1);
  deleteChunks(host, 2);
  expect(left()).toEqual([2, 0, 2, 2]);
  appendChunks(host, 2, 0, ['"again"']);
  deleteOtherChunks(host, 4);
  expect(left()).toEqual([2, 0, 2, 2]);
  deleteOtherChunks(host, 1);
  expect(left()).toEqual([2, 0, 2, 0]);
  expect(readChunks(host, 3, 1)).toEqual(['"x"']);
  deleteChunksOf(host, "main");
  expect(left()).toEqual([0, 0, 0, 0]);
});
