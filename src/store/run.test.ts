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
import { appendChunks, countChunks, deleteChunksOf, deleteChunks, deleteEndedChunks, readChunks } from "./stream.ts";
import { insertTurn, readTurn, settleTurn, trimTurns } from "./turn.ts";

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
const end = { status: "completed", output: '"x"', summary: "x", error: null, endedAt: 2000 } as const;

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
  // Why it was about to end was said before.
  expect(readRun(host, "a")).toMatchObject({ ...end, reason: "budget-exceeded" });
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
  // Those of turns that nobody knows any more go too.
  deleteEndedChunks(host, "main");
  expect(left()).toEqual([2, 0, 2, 0]);
  expect(readChunks(host, 3, 1)).toEqual(['"x"']);
  deleteChunksOf(host, "main");
  expect(left()).toEqual([0, 0, 0, 0]);
});

test("when a turn of a session starts, only what is over in that session is forgotten", async () => {
  const { host } = await probeHost();
  const turns = (["main", "main", "other", "other"] as const).map((session, i) => {
    const times = { notBefore: 0, createdAt: 0 };
    const fields = { id: `t${i}`, status: "accepted", trigger: "submit", continuation: 0, messageIds: "[]" } as const;
    const { seq } = insertTurn(host, { ...fields, ...times, session, body: null, clientTools: null });
    appendChunks(host, seq, 0, ['"x"']);
    return seq;
  });
  const [ended = 0, , failed = 0] = turns;
  for (const seq of [ended, failed]) settleTurn(host, seq, "error", "no", 0);
  deleteEndedChunks(host, "main");
  expect(turns.map((seq) => countChunks(host, seq))).toEqual([0, 1, 1, 1]);
});

test("of each session its newest turns are kept, and all that are open", async () => {
  const { host } = await probeHost();
  const add = (session: string, id: string, ends = true) => {
    const fields = { id, status: "accepted", trigger: "submit", continuation: 0, messageIds: "[]" } as const;
    const given = { ...fields, notBefore: 0, createdAt: 0, session, body: null, clientTools: null };
    const { seq } = insertTurn(host, given);
    if (ends) settleTurn(host, seq, "completed", null, 0);
  };
  add("a", "a0", false);
  for (const i of [1, 2, 3]) add("a", `a${i}`);
  for (let i = 0; i < 10; i++) add("b", `b${i}`);
  trimTurns(host, "b", 4);
  trimTurns(host, "a", 2);
  const left = (ids: readonly string[]) => ids.filter((id) => readTurn(host, id) !== undefined);
  expect(left(["a0", "a1", "a2", "a3"])).toEqual(["a0", "a2", "a3"]);
  expect(left(Array.from({ length: 10 }, (_, i) => `b${i}`))).toEqual(["b6", "b7", "b8", "b9"]);
});
