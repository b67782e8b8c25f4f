import type { SaveMessagesResult } from "perdure";
import { expect, test } from "vitest";
import { chunksOf, RESPONSE, textIn, TRANSCRIPT, UPDATED, user } from "./client.ts";
import { exchange, openChat } from "./harness.ts";

test("a turn: chunks with the stored id, numbers from 0, one end, and what is stored", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1", "Hello")]);
  const stage = await chat.stage();
  expect(stage.options).toMatchObject({ requestId: "r1", continuation: false });
  expect(stage.messages).toEqual([user("u1", "Hello")]);
  stage.say("Hi", " there").end();
  const end = await a.done("r1");
  expect(end).toEqual({ type: RESPONSE, id: "r1", body: "", done: true, outcome: "completed", messageIds: ["u1"] });
  const frames = a.of("r1");
  expect(frames.filter(({ done }) => done)).toHaveLength(1);
  const chunks = frames.slice(0, -1);
  expect(chunks.map(({ seq }) => seq)).toEqual(chunks.map((_, at) => at));
  for (const { body, replay, continuation } of frames) {
    expect(typeof body).toBe("string");
    expect([replay, continuation]).toEqual([undefined, undefined]);
  }
  const [start] = chunksOf(frames);
  const [, answer] = await chat.stored();
  expect(start).toEqual({ type: "start", messageId: answer?.id });
  expect(answer?.role).toBe("assistant");
  expect(textIn(answer)).toBe("Hi there");
  expect(await chat.rows("SELECT 1 FROM perdure_stream")).toEqual([]);
});

test("the model's own message id is taken, unless it belongs to another message", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).push({ type: "start", messageId: "mine" }, { type: "text-delta", id: "t", delta: "x" }).end();
  await a.done("r1");
  expect((await chat.stored()).map(({ id }) => id)).toEqual(["u1", "mine"]);
  a.request("r2", [user("u2")]);
  (await chat.stage()).push({ type: "start", messageId: "mine" }, { type: "text-delta", id: "t", delta: "y" }).end();
  await a.done("r2");
  const ids = (await chat.stored()).map(({ id }) => id);
  expect(new Set(ids).size).toBe(4);
  expect(chunksOf(a.of("r2"))[0]).toEqual({ type: "start", messageId: ids[3] });
});

test("who gets what: the sender no transcript, the others one on accept, and the stored answer before the end", async () => {
  const chat = await openChat();
  const [a, b] = [await chat.connect(), await chat.connect()];
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  await b.frame(({ type }) => type === TRANSCRIPT);
  stage.say("one").end();
  await Promise.all([a.done("r1"), b.done("r1")]);
  expect(a.ofType(TRANSCRIPT)).toEqual([]);
  expect(b.ofType(TRANSCRIPT).map(({ messages }) => messages?.length)).toEqual([1]);
  expect(b.of("r1")).toEqual(a.of("r1"));
  const order = b.frames.map(({ type, done }) =>
    type === TRANSCRIPT ? "transcript" : type === UPDATED ? "answer" : done === true ? "done" : "chunk",
  );
  expect(order[0]).toBe("transcript");
  expect(order.slice(-2)).toEqual(["answer", "done"]);
  expect(a.ofType(UPDATED)).toEqual([]);
  const shown = [...(b.ofType(TRANSCRIPT)[0]?.messages ?? []), b.ofType(UPDATED)[0]?.message];
  expect(shown).toEqual(await chat.stored());
});

test("turns run one at a time, in the order of their requests, and each has its own end", async () => {
  const chat = await openChat();
  const [a, b] = [await chat.connect(), await chat.connect()];
  a.request("r1", [user("u1")]);
  const first = await chat.stage();
  first.say("one");
  await b.said("r1", "one");
  b.request("r2", [user("u1"), user("u2")]);
  await b.flushed();
  a.request("r3", [user("u1"), user("u3")]);
  await a.flushed();
  expect(chat.calls).toBe(1);
  first.end();
  const second = await chat.stage();
  expect(second.options.requestId).toBe("r2");
  expect(chat.calls).toBe(2);
  second.say("two").end();
  const third = await chat.stage();
  expect(third.options.requestId).toBe("r3");
  third.say("three").end();
  await a.done("r3");
  expect(a.frames.filter(({ done }) => done).map(({ id }) => id)).toEqual(["r1", "r2", "r3"]);
});

test("what is queued is answered in its place: each turn sees what was said before it, and its own message last", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const first = await chat.stage();
  // Before the first chunk of the first answer.
  a.request("r2", [user("u1"), user("u2")]);
  a.request("r3", [user("u1"), user("u2"), user("u3")]);
  await a.flushed();
  first.say("one").end();
  const second = await chat.stage();
  expect(second.messages.map((message) => textIn(message))).toEqual(["u1", "one", "u2"]);
  second.say("two").end();
  const third = await chat.stage();
  expect(third.messages.map((message) => textIn(message))).toEqual(["u1", "one", "u2", "two", "u3"]);
  third.say("three").end();
  await a.done("r3");
  expect((await chat.stored()).map((message) => textIn(message))).toEqual(["u1", "one", "u2", "two", "u3", "three"]);
});

test("the body reaches the turn without what belongs to the protocol, and the next request replaces it", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const clientTools = [{ name: "where", description: "d", parameters: { type: "object" } }];
  a.request("r1", [user("u1")], { clientTools, city: "Rome", deep: { x: [1] } });
  const first = await chat.stage();
  expect(first.options.body).toEqual({ city: "Rome", deep: { x: [1] } });
  expect(first.options.clientTools).toEqual(clientTools);
  first.end();
  await a.done("r1");
  a.request("r2", [user("u2")]);
  const second = await chat.stage();
  expect(second.options.body).toBeUndefined();
  expect(second.options.clientTools).toBeUndefined();
  second.end();
  await a.done("r2");
});

test("a request with no messages, or ending in an answer, has no messageIds", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r0", []);
  (await chat.stage()).say("Hello?").end();
  expect(await a.done("r0")).not.toHaveProperty("messageIds");
  const stored = await exchange(chat, a, 1);
  a.request("r2", stored);
  const stage = await chat.stage();
  expect(stage.options.continuation).toBe(true);
  stage.say(" and more").end();
  expect(await a.done("r2")).not.toHaveProperty("messageIds");
  const after = await chat.stored();
  expect(after.map(({ id }) => id)).toEqual(stored.map(({ id }) => id));
  expect(textIn(after.at(-1))).toBe("answer 1 and more");
});

test("several new messages are answered together", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1"), user("u2")]);
  const stage = await chat.stage();
  expect(stage.messages.map(({ id }) => id)).toEqual(["u1", "u2"]);
  stage.end();
  expect(await a.done("r1")).toMatchObject({ messageIds: ["u1", "u2"] });
});

test("the same request twice runs once", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  a.request("r1", [user("u1")]);
  (await chat.stage()).say("once").end();
  await a.done("r1");
  a.request("r1", [user("u1")]);
  await a.flushed();
  await chat.stable();
  expect(chat.calls).toBe(1);
  expect(await chat.stored()).toHaveLength(2);
});

test("an answer under way is not among the stored messages, and comes by the stream", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.say("half");
  await a.said("r1", "half");
  expect(await chat.stored()).toEqual([user("u1")]);
  stage.end();
  await a.done("r1");
  expect(await chat.stored()).toHaveLength(2);
});

test("a closed socket never stops a turn", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.say("one ");
  await a.said("r1", "one ");
  await a.close();
  stage.say("two").end();
  await chat.stable();
  expect(textIn((await chat.stored())[1])).toBe("one two");
});

test("onChatResponse is told the end of every turn, and may start another", async () => {
  const chained: SaveMessagesResult[] = [];
  const chat = await openChat({
    async responded({ requestId, status }, agent) {
      if (requestId === "r1") chained.push(await agent.saveMessages([user("s1", status)]));
    },
  });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).say("one").end();
  const second = await chat.stage();
  expect(second.messages.map(({ id }) => id)).toEqual(["u1", second.messages[1]?.id, "s1"]);
  second.say("two").end();
  const end = await a.done(second.options.requestId);
  expect(end.messageIds).toEqual(["s1"]);
  await chat.stable();
  expect(chat.responses.map(({ status, requestId }) => [requestId, status])).toEqual([
    ["r1", "completed"],
    [second.options.requestId, "completed"],
  ]);
  expect(textIn(chat.responses[1]?.message)).toBe("two");
  expect(chained).toEqual([{ requestId: second.options.requestId, status: "completed" }]);
});
