import { expect, test } from "vitest";
import { chunksOf, RESPONSE, RESUMING, textIn, TRANSCRIPT, UPDATED, user } from "./client.ts";
import { exchange, openChat } from "./harness.ts";

test("saveMessages: everyone sees the message, the stream and its end; the caller hears how it ended", async () => {
  const chat = await openChat();
  const [a, b] = [await chat.connect(), await chat.connect()];
  const saved = (await chat.agent()).saveMessages([user("s1", "It is 9 o'clock.")]);
  const stage = await chat.stage();
  const id = stage.options.requestId;
  expect(stage.options.continuation).toBe(false);
  stage.say("Good morning.").end();
  expect(await saved).toEqual({ requestId: id, status: "completed" });
  for (const client of [a, b]) {
    const end = await client.done(id);
    expect(end).toEqual({ type: RESPONSE, id, body: "", done: true, outcome: "completed", messageIds: ["s1"] });
    expect(client.ofType(TRANSCRIPT).map(({ messages }) => messages?.length)).toEqual([1]);
    expect(client.ofType(UPDATED).map(({ message }) => message)).toEqual((await chat.stored()).slice(1));
    expect(chunksOf(client.of(id))[0]).toMatchObject({ type: "start" });
  }
  expect((await chat.stored()).map((message) => textIn(message))).toEqual(["It is 9 o'clock.", "Good morning."]);
});

test("saveMessages queues behind what runs, and uses the last request's body", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")], { city: "Rome" });
  const first = await chat.stage();
  const saved = (await chat.agent()).saveMessages([user("s1")]);
  await a.flushed();
  expect(chat.calls).toBe(1);
  first.say("one").end();
  const second = await chat.stage();
  expect(second.options.body).toEqual({ city: "Rome" });
  expect(second.messages.map((message) => textIn(message))).toEqual(["u1", "one", "s1"]);
  second.say("two").end();
  expect(await saved).toMatchObject({ status: "completed" });
});

test("saveMessages with a function is given the conversation when nothing else runs", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const first = await chat.stage();
  const saved = (await chat.agent()).saveMessages(async (messages) => [
    ...messages,
    user("s1", `after ${textIn(messages.at(-1))}`),
  ]);
  first.say("one").end();
  const second = await chat.stage();
  expect(second.messages.map((message) => textIn(message))).toEqual(["u1", "one", "after one"]);
  second.say("two").end();
  expect(await saved).toMatchObject({ status: "completed" });
  expect(await chat.stored()).toHaveLength(4);
});

test("saveMessages tells how a turn failed, was stopped, or was cleared away", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const agent = await chat.agent();
  const failing = agent.saveMessages([user("s1")]);
  (await chat.stage()).push({ type: "error", errorText: "no model" });
  expect(await failing).toMatchObject({ status: "error", error: "no model" });

  const abort = new AbortController();
  const stopped = agent.saveMessages([user("s2")], { signal: abort.signal });
  const stage = await chat.stage();
  abort.abort();
  await stage.aborted;
  expect(await stopped).toMatchObject({ status: "aborted" });

  const running = agent.saveMessages([user("s3")]);
  const waiting = agent.saveMessages([user("s4")]);
  await chat.stage();
  a.clear();
  expect(await running).toMatchObject({ status: "aborted" });
  expect(await waiting).toMatchObject({ status: "skipped" });

  const late = agent.saveMessages([user("s5")], { signal: AbortSignal.abort() });
  expect(await late).toMatchObject({ status: "aborted" });
  await chat.stable();
  expect(chat.takeErrors()).toEqual([]);
});

test("a turn of the server can be stopped by any client", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const saved = (await chat.agent()).saveMessages([user("s1")]);
  const stage = await chat.stage();
  stage.say("half");
  await a.said(stage.options.requestId, "half");
  a.cancel(stage.options.requestId);
  expect(await saved).toMatchObject({ status: "aborted" });
});

test("a turn of the server is offered to tabs that come while it streams", async () => {
  const chat = await openChat();
  const saved = (await chat.agent()).saveMessages([user("s1")]);
  const stage = await chat.stage();
  stage.say("half");
  const a = await chat.connect();
  expect(a.frames).toEqual([{ type: RESUMING, id: stage.options.requestId }]);
  stage.end();
  await saved;
});

test("persistMessages merges by id, never deletes, starts no turn, and tells everyone", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const [question, answer] = await exchange(chat, a, 1);
  if (answer === undefined || question === undefined) throw new Error("no answer");
  const agent = await chat.agent();
  await agent.persistMessages([{ ...answer, parts: [{ type: "text", text: "corrected by hand" }] }, user("s1")]);
  expect((await chat.stored()).map((message) => textIn(message))).toEqual(["question 1", "corrected by hand", "s1"]);
  await agent.persistMessages([]);
  expect(await chat.stored()).toHaveLength(3);
  const frame = await a.frame(({ type }) => type === TRANSCRIPT);
  expect(frame.messages).toHaveLength(3);
  expect(chat.calls).toBe(1);
});

test("continueLastTurn goes on with the last answer, with its own body", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const agent = await chat.agent();
  expect(await agent.continueLastTurn()).toEqual({ requestId: "", status: "skipped" });
  const before = await exchange(chat, a, 1);
  const continued = agent.continueLastTurn({ more: true });
  const stage = await chat.stage();
  const { requestId } = stage.options;
  expect(stage.options).toMatchObject({ continuation: true, body: { more: true } });
  stage.say(" and more").end();
  expect(await continued).toEqual({ requestId, status: "completed" });
  await a.done(requestId);
  const frames = a.of(requestId);
  expect(chunksOf(frames)[0]).toEqual({ type: "start" });
  expect(frames.every(({ continuation }) => continuation === true)).toBe(true);
  const after = await chat.stored();
  expect(after.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
  expect(textIn(after[1])).toBe("answer 1 and more");
  await agent.persistMessages([user("s1")]);
  expect(await agent.continueLastTurn()).toMatchObject({ status: "skipped" });
});

test("a continuation goes on with the answer, also when a message came in while it waited", async () => {
  const chat = await openChat({ slow: true });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).open().say("one").end();
  await a.done("r1");
  const agent = await chat.agent();
  const continued = agent.continueLastTurn();
  const stage = await chat.stage();
  a.request("r2", [user("u2")]);
  await a.flushed();
  // Cut before its first chunk: the second attempt must mean the same answer.
  await chat.restart();
  await chat.agent();
  expect(stage.options.continuation).toBe(true);
  const again = await chat.stage();
  expect(again.messages.map((message) => textIn(message))).toEqual(["u1", "one"]);
  again.open().say(" more").end();
  (await chat.stage()).open().say("two").end();
  await chat.stable();
  expect((await chat.stored()).map((message) => textIn(message))).toEqual(["u1", "one more", "u2", "two"]);
  void continued.catch(() => undefined);
});

test("waitUntilStable resolves when nothing runs or waits, or after its time", async () => {
  const chat = await openChat({ manual: true });
  const agent = await chat.agent();
  expect(await agent.waitUntilStable()).toBe(true);
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  const short = agent.waitUntilStable({ timeout: 500 });
  const long = agent.waitUntilStable({ timeout: 60_000 });
  const ever = agent.waitUntilStable();
  await chat.clock.advance(501);
  expect(await short).toBe(false);
  stage.end();
  await chat.clock.advance(100);
  expect(await Promise.all([long, ever])).toEqual([true, true]);
});

test("hasPendingInteraction knows of client tools and approvals of the last answer only", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const agent = await chat.agent();
  expect(agent.hasPendingInteraction()).toBe(false);
  a.request("r1", [user("u1")]);
  (await chat.stage()).call("c1").end("tool-calls");
  await a.done("r1");
  expect(agent.hasPendingInteraction()).toBe(true);
  a.result("c1", 1, { autoContinue: false });
  await a.flushed();
  expect(agent.hasPendingInteraction()).toBe(false);
});

test("the oldest messages go when there are too many, and a client that still shows them does not bring them back", async () => {
  const chat = await openChat({ maxPersistedMessages: 4 });
  const a = await chat.connect();
  let shown = await exchange(chat, a, 1);
  for (const n of [2, 3, 4]) {
    const stored = await exchange(chat, a, n, shown);
    expect(stored.length).toBeLessThanOrEqual(4);
    shown = [...shown, ...stored.slice(-2)];
  }
  expect(shown).toHaveLength(8);
  expect((await chat.stored()).map((message) => textIn(message))).toEqual([
    "question 3",
    "answer 3",
    "question 4",
    "answer 4",
  ]);
});

test("what onChatResponse throws goes to onError and hurts nobody", async () => {
  const chat = await openChat({
    responded() {
      throw new Error("not my day");
    },
  });
  const a = await chat.connect();
  await exchange(chat, a, 1);
  await exchange(chat, a, 2);
  await chat.stable();
  expect(chat.takeErrors()).toEqual(["not my day", "not my day"]);
});
