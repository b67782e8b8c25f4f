import { expect, test } from "vitest";
import { textIn, user } from "../../../test/chat/client.ts";
import { openDesk, save, type TestDesk } from "../../../test/chat/desk.ts";
import { PerdureError } from "../../base/error.ts";
import type { UIMessage } from "../../message/types.ts";
import { newestTurn, readTurn } from "../../store/turn.ts";
import { KEPT_TURNS } from "./accept.ts";
import { listInbox, withdrawInbox } from "./inbox.ts";
import {
  cancelSubmission,
  deleteSubmission,
  deleteSubmissions,
  inspectSubmission,
  listSubmissions,
  submitMessages,
  type SubmitOptions,
} from "./submissions.ts";
import { submit } from "./submit.ts";

async function busy() {
  const desk = await openDesk();
  desk.send("u1");
  const stage = await desk.stage();
  return { desk, stage, chat: desk.chat };
}

const code = (work: () => unknown) => {
  try {
    work();
  } catch (thrown) {
    return PerdureError.is(thrown) ? thrown.code : thrown;
  }
  return undefined;
};
const statusOf = ({ chat }: TestDesk, id: string) => inspectSubmission(chat, id)?.status;

test("accepted in one commit, and the messages join the conversation when the turn starts", async () => {
  const { desk, stage, chat } = await busy();
  await desk.clock.advance(1_000);
  const commits = desk.commits();
  const at = desk.clock.now();
  const given = submitMessages(chat, [user("s1")], { metadata: { hook: 7 }, idempotencyKey: "k1" });
  expect(desk.commits() - commits).toBe(1);
  expect(given).toMatchObject({ status: "pending", accepted: true });
  const { submissionId, requestId } = given;
  expect(inspectSubmission(chat, submissionId)).toEqual({
    submissionId,
    requestId,
    idempotencyKey: "k1",
    status: "pending",
    messages: [user("s1")],
    metadata: { hook: 7 },
    error: undefined,
    createdAt: at,
    startedAt: undefined,
    settledAt: undefined,
  });
  desk.send("u2");
  expect(desk.ids()).toEqual(["u1", "u2"]);
  stage.say("one").end();
  desk.told.length = 0;
  const second = await desk.stage();
  expect(desk.told).toContain("transcript");
  expect([second.options.requestId, second.options.continuation]).toEqual([requestId, false]);
  expect(second.messages.map(textIn)).toEqual(["u1", "one", "s1"]);
  // What waits for a later turn is behind it.
  expect(desk.ids().filter((id) => !id.startsWith("msg"))).toEqual(["u1", "s1", "u2"]);
  expect(inspectSubmission(chat, submissionId)).toMatchObject({ status: "running", startedAt: at });
  second.say("two").end();
  expect(await chat.settled(requestId)).toMatchObject({ status: "completed" });
  expect(inspectSubmission(chat, submissionId)).toMatchObject({ status: "completed", settledAt: at });
  (await desk.stage()).end();
});

test("with nothing else to do it starts at once", async () => {
  const desk = await openDesk();
  const { submissionId, status } = submitMessages(desk.chat, [user("s1"), user("s2")]);
  expect(status).toBe("running");
  const stage = await desk.stage();
  expect(stage.messages.map(textIn)).toEqual(["s1", "s2"]);
  stage.say("yes").end();
  await desk.chat.idle();
  expect(statusOf(desk, submissionId)).toBe("completed");
});

test("the same key or id again is the first one, also when messages have new ids, and after its end", async () => {
  const { desk, stage, chat } = await busy();
  const first = submitMessages(chat, [user("s1", "hello")], { idempotencyKey: "k", submissionId: "mine" });
  const commits = desk.commits();
  const again: SubmitOptions[] = [
    { idempotencyKey: "k" },
    { submissionId: "mine" },
    { idempotencyKey: "k", submissionId: "mine", metadata: 2 },
  ];
  const expected = { submissionId: "mine", requestId: first.requestId, status: "pending", accepted: false };
  for (const options of again) expect(submitMessages(chat, [user("other", "hello")], options)).toEqual(expected);
  expect([desk.commits() - commits, listInbox(chat).length]).toEqual([0, 1]);
  stage.end();
  (await desk.stage()).end();
  await chat.idle();
  expect(submitMessages(chat, [user("s1", "hello")], { idempotencyKey: "k" })).toEqual({
    ...expected,
    status: "completed",
  });
  expect(desk.calls).toBe(2);
});

test("a key or an id that stands for something else is refused, and nothing has changed", async () => {
  const { desk, stage, chat } = await busy();
  submitMessages(chat, [user("s1", "hello")], { idempotencyKey: "k1", submissionId: "one" });
  submitMessages(chat, [user("s2", "world")], { idempotencyKey: "k2", submissionId: "two" });
  const commits = desk.commits();
  const wrong: [string, SubmitOptions][] = [
    ["other", { idempotencyKey: "k1" }],
    ["other", { submissionId: "one" }],
    ["hello", { idempotencyKey: "k1", submissionId: "two" }],
    ["hello", { idempotencyKey: "k1", submissionId: "new" }],
    ["hello", { idempotencyKey: "new", submissionId: "one" }],
  ];
  for (const [text, options] of wrong)
    expect([options, code(() => submitMessages(chat, [user("s9", text)], options))]).toEqual([options, "conflict"]);
  expect([desk.commits() - commits, listSubmissions(chat).length]).toEqual([0, 2]);
  stage.end();
  chat.cancelAll();
});

test("what is no message, and keys that cannot be, are refused", async () => {
  const { desk, stage, chat } = await busy();
  const bad: [readonly unknown[], SubmitOptions?][] = [
    [[]],
    [[7]],
    [[{ id: "", role: "user", parts: [] }]],
    [[{ id: "x", role: "king", parts: [] }]],
    [[user("x")], { idempotencyKey: "" }],
    [[user("x")], { submissionId: "x".repeat(513) }],
    [[user("x")], { submissionId: "\ud800" }],
  ];
  const commits = desk.commits();
  for (const [messages, options] of bad)
    expect(code(() => submitMessages(chat, messages as UIMessage[], options))).toBe("bad_input");
  expect(desk.commits()).toBe(commits);
  for (const limit of [0, -1, 1.5, Number.NaN]) expect(code(() => listSubmissions(chat, { limit }))).toBe("bad_input");
  expect(code(() => deleteSubmissions(chat, { olderThan: Number.NaN }))).toBe("bad_input");
  stage.end();
});

test("the status is how the turn ended, with its error", async () => {
  const desk = await openDesk();
  const { submissionId } = submitMessages(desk.chat, [user("s1")]);
  (await desk.stage()).push({ type: "error", errorText: "no model" });
  await desk.chat.idle();
  expect(inspectSubmission(desk.chat, submissionId)).toMatchObject({ status: "error", error: "no model" });
});

test("cancelled while it waits: nothing of it was ever in the conversation, and the reason is kept", async () => {
  const { desk, stage, chat } = await busy();
  const { submissionId, requestId } = submitMessages(chat, [user("s1")]);
  const settled = chat.settled(requestId);
  expect(cancelSubmission(chat, submissionId, "not needed")).toBe(true);
  expect(await settled).toEqual({ status: "aborted" });
  expect(inspectSubmission(chat, submissionId)).toMatchObject({ status: "aborted", error: "not needed" });
  expect(cancelSubmission(chat, submissionId, "again")).toBe(false);
  expect(cancelSubmission(chat, "nobody")).toBe(false);
  expect(inspectSubmission(chat, submissionId)?.error).toBe("not needed");
  stage.end();
  await chat.idle();
  expect([desk.calls, desk.ids().includes("s1")]).toEqual([1, false]);
});

test("cancelled while it runs: the turn stops, and what was said stays", async () => {
  const desk = await openDesk();
  const { submissionId } = submitMessages(desk.chat, [user("s1")]);
  const stage = (await desk.stage()).say("half");
  expect(cancelSubmission(desk.chat, submissionId)).toBe(true);
  await stage.aborted;
  await desk.chat.idle();
  expect(inspectSubmission(desk.chat, submissionId)).toMatchObject({ status: "aborted", error: undefined });
});

test("a cancel holds after a crash: the submission ends, and no model is called", async () => {
  const { desk } = await busy();
  const { submissionId } = submitMessages(desk.chat, [user("s1")]);
  desk.host.sql("UPDATE perdure_turn SET cancelled = 1 WHERE trigger = 'submission'");
  desk.restart();
  expect(statusOf(desk, submissionId)).toBe("aborted");
  (await desk.stage()).end();
  await desk.chat.idle();
  expect(desk.calls).toBe(2);
});

test("withdrawn and cleared ones are skipped, the one that runs is aborted", async () => {
  const desk = await openDesk();
  const ids = ["s1", "s2", "s3"].map((id) => submitMessages(desk.chat, [user(id)]));
  await desk.stage();
  await desk.clock.advance(5);
  withdrawInbox(desk.chat, ids[1]?.requestId ?? "");
  desk.chat.clear(undefined);
  expect(ids.map(({ submissionId }) => statusOf(desk, submissionId))).toEqual(["aborted", "skipped", "skipped"]);
  expect(inspectSubmission(desk.chat, ids[0]?.submissionId ?? "")?.settledAt).toBe(desk.clock.now());
  await desk.chat.idle();
});

test("accepted, then a crash before its start: the next life runs it", async () => {
  const { desk } = await busy();
  const { submissionId, requestId } = submitMessages(desk.chat, [user("s1")]);
  desk.restart();
  (await desk.stage()).say("one").end();
  const second = await desk.stage();
  expect([second.options.requestId, statusOf(desk, submissionId)]).toEqual([requestId, "running"]);
  second.say("two").end();
  await desk.chat.idle();
  expect(desk.chat.transcripts.of("main").list().map(textIn)).toEqual(["u1", "one", "s1", "two"]);
});

test("a crash while it runs: its messages are there once, and when it started does not change", async () => {
  const desk = await openDesk();
  const { submissionId } = submitMessages(desk.chat, [user("s1")]);
  await desk.stage();
  const { startedAt } = inspectSubmission(desk.chat, submissionId) ?? {};
  await desk.clock.advance(500);
  desk.restart();
  const again = await desk.stage();
  expect(again.messages.map(textIn)).toEqual(["s1"]);
  expect(inspectSubmission(desk.chat, submissionId)).toMatchObject({ status: "running", startedAt });
  again.say("done").end();
  await desk.chat.idle();
  expect(statusOf(desk, submissionId)).toBe("completed");
});

test("a start that cannot be stored leaves messages and status as they were", async () => {
  const desk = await openDesk();
  desk.host.sql("CREATE TRIGGER full BEFORE INSERT ON perdure_message BEGIN SELECT RAISE(ABORT, 'full'); END");
  const { submissionId, status } = submitMessages(desk.chat, [user("s1")]);
  expect([status, desk.ids()]).toEqual(["pending", []]);
  desk.host.sql("DROP TRIGGER full");
  await desk.clock.advance(10_000);
  desk.chat.runDue();
  (await desk.stage()).end();
  await desk.chat.idle();
  expect(statusOf(desk, submissionId)).toBe("completed");
});

test("it outlives its turn, which is forgotten, and is forgotten itself only when asked", async () => {
  const desk = await openDesk();
  const results = [];
  for (let i = 0; i < KEPT_TURNS + 5; i++) {
    results.push(submitMessages(desk.chat, [user(`s${i}`)], { idempotencyKey: `k${i}` }));
    (await desk.stage()).end();
    await desk.chat.idle();
    await desk.clock.advance(10);
  }
  const [first] = results;
  if (first === undefined) throw new Error("nothing");
  expect(readTurn(desk.host, first.requestId)).toBeUndefined();
  expect(statusOf(desk, first.submissionId)).toBe("completed");
  expect(submitMessages(desk.chat, [user("s0")], { idempotencyKey: "k0" })).toEqual({
    ...first,
    status: "completed",
    accepted: false,
  });
  expect(listSubmissions(desk.chat, { limit: 2 }).map(({ idempotencyKey }) => idempotencyKey)).toEqual([
    `k${KEPT_TURNS + 4}`,
    `k${KEPT_TURNS + 3}`,
  ]);
  const cut = inspectSubmission(desk.chat, results[10]?.submissionId ?? "")?.settledAt ?? 0;
  expect(deleteSubmissions(desk.chat, { olderThan: new Date(cut) })).toBe(10);
  expect(listSubmissions(desk.chat)).toHaveLength(KEPT_TURNS - 5);
  expect(submitMessages(desk.chat, [user("anew")], { idempotencyKey: "k0" }).accepted).toBe(true);
  (await desk.stage()).end();
});

test("listed by status; only what has ended can be deleted", async () => {
  const { desk, stage, chat } = await busy();
  const one = submitMessages(chat, [user("s1")]).submissionId;
  const two = submitMessages(chat, [user("s2")]).submissionId;
  cancelSubmission(chat, two);
  const list = (status: Parameters<typeof listSubmissions>[1]) =>
    listSubmissions(chat, status).map((s) => s.submissionId);
  expect(list({ status: "pending" })).toEqual([one]);
  expect(list({ status: ["pending", "aborted"] })).toEqual([two, one]);
  expect(list({ status: "error" })).toEqual([]);
  expect([deleteSubmission(chat, one), deleteSubmission(chat, two), deleteSubmission(chat, two)]).toEqual([
    false,
    true,
    false,
  ]);
  expect(deleteSubmissions(chat, { olderThan: desk.clock.now() + 1 })).toBe(0);
  stage.end();
  (await desk.stage()).end();
  await chat.idle();
  expect(deleteSubmissions(chat, { olderThan: desk.clock.now() + 1 })).toBe(1);
});

const REGENERATE = { trigger: "regenerate", body: undefined, clientTools: undefined, session: "main" } as const;

/** Plays all turns of "main" that wait, each answered with its number. @returns what the models were shown, and the end. */
async function playOut(desk: TestDesk, turns: number) {
  const shown: string[][] = [];
  for (let i = 1; i <= turns; i++) {
    const stage = await desk.stage();
    shown.push(stage.messages.map(textIn));
    stage.say(`answer ${i}`).end();
  }
  await desk.chat.idle();
  return { shown, end: desk.chat.transcripts.of("main").list().map(textIn) };
}

test("what is answered anew while a submission waits is answered first, and the submission stands behind it", async () => {
  const desk = await openDesk();
  const { chat } = desk;
  desk.send("u1");
  (await desk.stage()).say("one").end();
  await chat.settled("r-u1");
  // Something of another session runs, so that all wait.
  save(chat, [user("x")], "other");
  const elsewhere = await desk.stage();
  submitMessages(chat, [user("s1")], { session: "main" });
  submitMessages(chat, [user("s2")], { session: "main" });
  expect(submit(chat, { id: "again", messages: [user("u1")], ...REGENERATE }, undefined)).toBeUndefined();
  elsewhere.end();
  const { shown, end } = await playOut(desk, 3);
  expect(shown).toEqual([["u1"], ["u1", "answer 1", "s1"], ["u1", "answer 1", "s1", "answer 2", "s2"]]);
  expect(end).toEqual(["u1", "answer 1", "s1", "answer 2", "s2", "answer 3"]);
});

test("what is answered anew before it was answered at all: only submissions between the two give way, also after a restart", async () => {
  const desk = await openDesk();
  save(desk.chat, [user("x")], "other");
  await desk.stage();
  submitMessages(desk.chat, [user("s1")], { session: "main" });
  submit(desk.chat, { id: "first", messages: [user("u1")], ...REGENERATE, trigger: "submit" }, undefined);
  submitMessages(desk.chat, [user("s2")], { session: "main" });
  submit(desk.chat, { id: "again", messages: [user("u1")], ...REGENERATE }, undefined);
  expect(listInbox(desk.chat).map(({ messageIds, requestId }) => messageIds[0] ?? requestId)).toEqual([
    "s1",
    "u1",
    "again",
    "s2",
  ]);
  desk.restart();
  (await desk.stage()).end();
  const { shown, end } = await playOut(desk, 4);
  expect(shown).toEqual([
    ["s1"],
    ["s1", "answer 1", "u1"],
    ["s1", "answer 1", "u1"],
    ["s1", "answer 1", "u1", "answer 3", "s2"],
  ]);
  expect(end).toEqual(["s1", "answer 1", "u1", "answer 3", "s2", "answer 4"]);
});

test("a submission that gave way and failed is the last turn, which those who come back are told of", async () => {
  const desk = await openDesk();
  const { chat } = desk;
  desk.send("u1");
  (await desk.stage()).say("one").end();
  await chat.settled("r-u1");
  save(chat, [user("x")], "other");
  const elsewhere = await desk.stage();
  const { requestId } = submitMessages(chat, [user("s1")], { session: "main" });
  submit(chat, { id: "again", messages: [user("u1")], ...REGENERATE }, undefined);
  elsewhere.end();
  (await desk.stage()).say("two").end();
  (await desk.stage()).fail(new Error("broken"));
  await chat.settled(requestId);
  expect(newestTurn(desk.host, "main")).toMatchObject({ id: requestId, status: "error" });
});

test("accepted inside of a transaction, a turn starts when that is committed, and not at all if it is undone", async () => {
  const desk = await openDesk();
  const { chat } = desk;
  expect(() =>
    chat.commit(() => {
      submitMessages(chat, [user("s1")]);
      throw new Error("undone");
    }),
  ).toThrow("undone");
  expect([listSubmissions(chat), desk.calls, listInbox(chat)]).toEqual([[], 0, []]);
  const result = chat.commit(() => {
    const made = submitMessages(chat, [user("s2")]);
    expect([desk.calls, chat.running]).toEqual([0, undefined]);
    return made;
  });
  expect(result.status).toBe("pending");
  const { shown } = await playOut(desk, 1);
  expect(shown).toEqual([["s2"]]);
});
