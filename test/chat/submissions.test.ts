import { expect, test } from "vitest";
import { inspectSubmission, submitMessages } from "../../src/turn/intake/submissions.ts";
import { textIn, TRANSCRIPT, user } from "./client.ts";
import { openChat } from "./harness.ts";
import { roomOf } from "./room.ts";

test("every tab sees the messages when the turn starts, not before, then its stream and its end", async () => {
  const chat = await openChat();
  const [a, b] = [await chat.connect(), await chat.connect()];
  a.request("r1", [user("u1")]);
  const stage = (await chat.stage()).say("one");
  await b.said("r1", "one");
  const { chat: room } = await roomOf(chat);
  const { requestId, submissionId } = submitMessages(room, [user("s1")]);
  await a.flushed();
  expect((await chat.stored()).map(textIn)).not.toContain("s1");
  stage.end();
  (await chat.stage()).say("two").end();
  for (const client of [a, b]) {
    expect(await client.done(requestId)).toMatchObject({ outcome: "completed", messageIds: ["s1"] });
    await client.frame(({ type, messages }) => type === TRANSCRIPT && messages?.map(textIn).at(-1) === "s1");
  }
  expect((await chat.stored()).map(textIn)).toEqual(["u1", "one", "s1", "two"]);
  expect(inspectSubmission(room, submissionId)?.status).toBe("completed");
});

test("a restart carries an accepted submission out, with nobody connected", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  await chat.stage();
  const { submissionId } = submitMessages((await roomOf(chat)).chat, [user("s1")], { idempotencyKey: "k" });
  await chat.restart();
  await chat.agent();
  (await chat.stage()).say("one").end();
  (await chat.stage()).say("two").end();
  await chat.stable();
  const { chat: room } = await roomOf(chat);
  expect(inspectSubmission(room, submissionId)?.status).toBe("completed");
  expect(submitMessages(room, [user("s1")], { idempotencyKey: "k" })).toMatchObject({ submissionId, accepted: false });
  expect((await chat.stored()).map(textIn)).toEqual(["u1", "one", "s1", "two"]);
  expect(chat.calls).toBe(3);
});

test("a client stops it like any other turn", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const { chat: room } = await roomOf(chat);
  const { requestId, submissionId } = submitMessages(room, [user("s1")]);
  const stage = (await chat.stage()).say("half");
  await a.said(requestId, "half");
  a.cancel(requestId);
  await stage.aborted;
  await a.done(requestId);
  expect(inspectSubmission(room, submissionId)?.status).toBe("aborted");
});
