import { expect, test } from "vitest";
import type { MessageConcurrency } from "perdure";
import { RESPONSE, TRANSCRIPT, textIn, user } from "./client.ts";
import { openChat } from "./harness.ts";

const skipped = (id: string, ...messageIds: string[]) => ({
  type: RESPONSE,
  id,
  body: "",
  done: true,
  outcome: "skipped",
  messageIds,
});

/** A turn that streams, and two tabs. */
async function busy(messageConcurrency: MessageConcurrency, manual = false) {
  const chat = await openChat({ messageConcurrency, manual });
  const [a, b] = [await chat.connect(), await chat.connect()];
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  return { chat, a, b, stage };
}

test("drop: the sender gets the conversation back and hears that it was skipped; nobody else hears anything", async () => {
  const { chat, a, b, stage } = await busy("drop");
  stage.say("one");
  await b.said("r1", "one");
  const before = a.frames.length;
  b.request("r2", [user("u1"), user("u2")]);
  expect(await b.done("r2")).toEqual(skipped("r2", "u1", "u2"));
  const [rollback, end] = b.frames.slice(-2);
  expect(rollback).toMatchObject({ type: TRANSCRIPT });
  expect(rollback?.messages?.map((message) => textIn(message))).toEqual(["u1", "one"]);
  expect(end?.id).toBe("r2");
  await a.flushed();
  expect(a.frames.length).toBe(before);
  stage.end();
  await a.done("r1");
  await chat.stable();
  expect((await chat.stored()).map(({ id }) => id)).not.toContain("u2");
  // Later it may be sent again.
  b.request("r3", [user("u2")]);
  (await chat.stage()).end();
  expect(await b.done("r3")).toMatchObject({ outcome: "completed" });
});

test("drop: regenerate is not dropped", async () => {
  const { chat, a, stage } = await busy("drop");
  a.request("again", [user("u1")], { trigger: "regenerate-message" });
  await a.flushed();
  stage.say("one").end();
  (await chat.stage()).say("two").end();
  expect(await a.done("again")).toMatchObject({ outcome: "completed" });
  expect((await chat.stored()).map((message) => textIn(message))).toEqual(["u1", "two"]);
});

test("latest: only the newest of those that wait runs, all messages stay, skipped ends go to their senders alone", async () => {
  const { chat, a, b, stage } = await busy("latest");
  a.request("r2", [user("u1"), user("u2")]);
  await a.flushed();
  b.request("r3", [user("u1"), user("u2"), user("u3")]);
  await b.flushed();
  expect(await a.done("r2")).toEqual(skipped("r2", "u1", "u2"));
  a.request("r4", [user("u1"), user("u2"), user("u3"), user("u4")]);
  expect(await b.done("r3")).toMatchObject({ outcome: "skipped" });
  stage.say("one").end();
  const second = await chat.stage();
  expect(second.options.requestId).toBe("r4");
  expect(second.messages.map((message) => textIn(message))).toEqual(["u1", "one", "u2", "u3", "u4"]);
  second.say("all").end();
  expect(await b.done("r4")).toMatchObject({ outcome: "completed" });
  expect(chat.calls).toBe(2);
  expect(b.of("r2")).toEqual([]);
  expect(a.of("r3")).toEqual([]);
  expect((await chat.stored()).map((message) => textIn(message))).toEqual(["u1", "one", "u2", "u3", "u4", "all"]);
});

test("merge: what waited becomes one message, the newest", async () => {
  const { chat, a, stage } = await busy("merge");
  stage.say("one");
  await a.said("r1", "one");
  a.request("r2", [user("u1"), user("u2", "two ")]);
  a.request("r3", [user("u1"), user("u2", "two "), user("u3", "three ")]);
  a.request("r4", [user("u1"), user("u2", "two "), user("u3", "three "), user("u4", "four")]);
  await a.flushed();
  expect(await a.done("r2")).toMatchObject({ outcome: "skipped" });
  expect(await a.done("r3")).toMatchObject({ outcome: "skipped" });
  stage.end();
  const second = await chat.stage();
  expect(second.messages.map(({ id }) => id)).toEqual(["u1", second.messages[1]?.id, "u4"]);
  expect(second.messages[2]?.parts).toEqual(["two ", "three ", "four"].map((text) => ({ type: "text", text })));
  second.say("all").end();
  expect(await a.done("r4")).toMatchObject({ outcome: "completed" });
  expect((await chat.stored()).map((message) => textIn(message))).toEqual(["u1", "one", "two three four", "all"]);
});

test("merge: who sent what became one shows it as one, also when nothing streamed in its conversation", async () => {
  const chat = await openChat({ messageConcurrency: "merge", maxConcurrentTurns: 1 });
  const a = await chat.connect();
  a.send({ type: "perdure_session", id: "s", op: "create", name: "Elsewhere" });
  const made = (await a.frame(({ id }) => id === "s")) as { readonly value?: { readonly id: string } };
  const elsewhere = (await chat.agent()).saveMessages([user("x")], { session: made.value?.id ?? "" });
  const stage = await chat.stage();
  // It waits for the turn of the other conversation.
  a.request("r1", [user("u1", "one ")]);
  a.request("r2", [user("u1", "one "), user("u2", "two")]);
  expect(await a.done("r1")).toMatchObject({ outcome: "skipped" });
  stage.end();
  await elsewhere;
  (await chat.stage()).say("all").end();
  await a.done("r2");
  await a.flushed();
  const last = a.frames.findLast(({ type }) => type === TRANSCRIPT);
  expect(last?.messages?.slice(0, 1).map((message) => [message.id, textIn(message)])).toEqual([["u2", "one two"]]);
});

test("debounce: the newest runs after a pause in which nothing more was sent", async () => {
  const { chat, a, stage } = await busy({ strategy: "debounce", debounceMs: 400 }, true);
  a.request("r2", [user("u2")]);
  await a.flushed();
  stage.end();
  await chat.clock.advance(300);
  await a.done("r1");
  expect(chat.calls).toBe(1);
  a.request("r3", [user("u2"), user("u3")]);
  await a.flushed();
  expect(await a.done("r2")).toMatchObject({ outcome: "skipped" });
  await chat.clock.advance(399);
  await a.flushed();
  expect(chat.calls).toBe(1);
  await chat.clock.advance(1);
  const second = await chat.stage();
  expect(second.options.requestId).toBe("r3");
  expect(second.messages.map(({ id }) => id)).toContain("u2");
  second.end();
  await chat.clock.advance(100);
  await a.done("r3");
});

test("debounce: the first message does not wait, and one that waits can be stopped", async () => {
  const { chat, a, stage } = await busy("debounce", true);
  a.request("r2", [user("u2")]);
  await a.flushed();
  a.cancel("r2");
  expect(await a.done("r2")).toMatchObject({ outcome: "aborted" });
  stage.end();
  await chat.clock.advance(10_000);
  await a.done("r1");
  expect(chat.calls).toBe(1);
});

test("a debounce that waits survives a restart", async () => {
  const { chat, a, stage } = await busy({ strategy: "debounce", debounceMs: 60_000 }, true);
  a.request("r2", [user("u2")]);
  await a.flushed();
  stage.end();
  await chat.clock.advance(1_000);
  await a.done("r1");
  await chat.restart();
  await chat.agent();
  await chat.clock.advance(1_000);
  expect(chat.calls).toBe(1);
  await chat.clock.advance(60_000);
  const second = await chat.stage();
  expect(second.options.requestId).toBe("r2");
  second.end();
});

test("an unknown policy is an error for the sender, and nothing is stored", async () => {
  const { chat, a, stage } = await busy("newest" as MessageConcurrency);
  a.request("r2", [user("u2")]);
  expect(await a.done("r2")).toMatchObject({ error: true });
  expect(chat.takeErrors().join()).toContain("newest");
  stage.end();
  await a.done("r1");
  expect((await chat.stored()).map(({ id }) => id)).not.toContain("u2");
});

test("queue: who sent a message before it had the last answer, which was given already, is told where it stands", async () => {
  const { chat, a, stage } = await busy("queue");
  stage.say("one").end();
  await a.done("r1");
  await chat.stable();
  // Sent while the answer was under way to it: it shows both messages, and the answers behind them.
  a.request("r2", [user("u1"), user("u2")]);
  (await chat.stage()).say("two").end();
  await a.done("r2");
  const last = await a.frame(({ type, messages }) => type === TRANSCRIPT && messages?.length === 4);
  expect(last.messages?.map((message) => textIn(message))).toEqual(["u1", "one", "u2", "two"]);
});
