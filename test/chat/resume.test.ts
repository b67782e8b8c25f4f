import { expect, test } from "vitest";
import {
  type ChatClient,
  chunksOf,
  type Frame,
  NONE,
  PENDING,
  RESPONSE,
  RESUMING,
  textIn,
  textOf,
  TRANSCRIPT,
  user,
} from "./client.ts";
import { exchange, openChat, type TestChat } from "./harness.ts";

const summary = (frames: readonly Frame[]) =>
  frames.map(({ type, done, replay, replayComplete, seq }) => {
    if (type !== RESPONSE) return type;
    if (replayComplete === true) return "caught up";
    return `${replay === true ? "replay" : "live"} ${done === true ? "done" : seq}`;
  });

async function streaming(chat: TestChat, client: ChatClient, text: string) {
  client.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.say(text);
  await client.said("r1", text);
  return stage;
}

test("nothing there: idle, with the id of the question", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  expect(a.frames).toEqual([]);
  expect(await a.probe("p1")).toEqual({ type: NONE, reason: "idle", probeId: "p1" });
  await exchange(chat, a, 1);
  expect(await a.probe("p2")).toEqual({ type: NONE, reason: "idle", probeId: "p2" });
  const b = await chat.connect();
  expect(b.frames).toEqual([]);
});

test("the conversation is sent on connect, marked as such, with what there is of the answer", async () => {
  const chat = await openChat({ slow: true });
  const a = await chat.connect();
  expect(a.greeting).toBeUndefined();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  const early = await chat.connect();
  expect(early.greeting).toMatchObject({ type: TRANSCRIPT, connect: true, messages: [user("u1")] });
  expect(early.frames).toEqual([{ type: PENDING, id: "r1" }]);
  stage.open().say("one");
  await a.said("r1", "one");
  const late = await chat.connect();
  expect(late.greeting?.messages?.map((message) => textIn(message))).toEqual(["u1", "one"]);
  stage.end();
  await a.done("r1");
  expect((await chat.connect()).greeting?.messages).toEqual(await chat.stored());
});

test("a question without an id is answered without one", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.send({ type: "cf_agent_stream_resume_request" });
  expect(await a.frame(({ type }) => type === NONE)).toEqual({ type: NONE, reason: "idle" });
});

test("a stream is offered on connect and again on request; one ACK gives all of it, then what follows", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const stage = await streaming(chat, a, "one ");
  const b = await chat.connect();
  expect(b.frames).toEqual([{ type: RESUMING, id: "r1" }]);
  expect(await b.probe("p")).toEqual({ type: RESUMING, id: "r1", probeId: "p" });
  stage.say("two ");
  await a.said("r1", "two ");
  await b.flushed();
  expect(b.of("r1")).toEqual([]);
  b.ack("r1");
  await b.said("r1", "two ");
  stage.say("three").end();
  await Promise.all([a.done("r1"), b.done("r1")]);
  const frames = b.of("r1");
  const caughtUp = frames.findIndex(({ replayComplete }) => replayComplete === true);
  expect(frames[caughtUp]).toEqual({
    type: RESPONSE,
    id: "r1",
    body: "",
    done: false,
    replay: true,
    replayComplete: true,
  });
  const chunks = frames.filter(({ seq }) => seq !== undefined);
  expect(chunks.map(({ seq }) => seq)).toEqual(chunks.map((_, at) => at));
  expect(chunks.map(({ replay }) => replay === true)).toEqual(chunks.map((_, at) => at < caughtUp));
  const bare = (list: readonly Frame[]) => list.filter(({ seq }) => seq !== undefined).map(({ body }) => body);
  expect(bare(frames)).toEqual(bare(a.of("r1")));
  expect(frames.at(-1)).toEqual({
    type: RESPONSE,
    id: "r1",
    body: "",
    done: true,
    outcome: "completed",
    messageIds: ["u1"],
  });
});

test("every ACK is a whole replay, and none of them doubles what is live", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const stage = await streaming(chat, a, "one ");
  const b = await chat.connect();
  b.ack("r1");
  await b.said("r1", "one ");
  b.ack("r1");
  await b.flushed();
  expect(b.of("r1").filter(({ replayComplete }) => replayComplete)).toHaveLength(2);
  stage.say("two").end();
  await b.done("r1");
  const live = b.of("r1").filter(({ replay, seq }) => replay === undefined && seq !== undefined);
  expect(chunksOf(live).map(({ type }) => type)).toEqual(["text-delta", "text-end", "finish-step", "finish"]);
});

test("an ACK with another id is an answer to another offer: nothing of this stream comes by it", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const stage = await streaming(chat, a, "one ");
  const b = await chat.connect();
  b.ack("other");
  await b.flushed();
  stage.say("two");
  await a.said("r1", "two");
  await b.flushed();
  expect(b.of("r1")).toEqual([]);
  b.ack("r1");
  await b.said("r1", "one two");
  stage.end();
  await b.done("r1");
});

test("who was offered a stream and never takes it hears nothing of it before its end", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const stage = await streaming(chat, a, "one ");
  const b = await chat.connect();
  stage.say("two");
  await a.said("r1", "two");
  await b.flushed();
  expect(summary(b.frames)).toEqual([RESUMING]);
  stage.end();
  await b.done("r1");
  await b.flushed();
  // Then all of it at once, told as a replay: who does not want it passes over it.
  expect(b.of("r1").filter(({ seq, replay }) => seq !== undefined && replay !== true)).toEqual([]);
  expect(summary(b.frames).slice(-2)).toEqual([TRANSCRIPT, "live done"]);
  for (const { messages } of b.ofType(TRANSCRIPT)) expect(messages).toEqual(await chat.stored());
  // And then it is a listener like any other.
  a.request("r2", [user("u2")]);
  (await chat.stage()).say("again").end();
  await b.done("r2");
  expect(textOf(b.of("r2"))).toBe("again");
});

test("an ACK after the end: a bare end, with the outcome and the ids", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const stage = await streaming(chat, a, "one");
  stage.end();
  await a.done("r1");
  const b = await chat.connect();
  b.ack("r1");
  const end = {
    type: RESPONSE,
    id: "r1",
    body: "",
    done: true,
    replay: true,
    outcome: "completed",
    messageIds: ["u1"],
  };
  expect(await b.done("r1")).toEqual(end);
  b.ack("r1");
  await b.flushed();
  expect(b.of("r1")).toEqual([end, end]);
});

test("an ACK for a stream that nobody remembers", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.ack("long-gone");
  expect(await a.done("long-gone")).toEqual({ type: RESPONSE, id: "long-gone", body: "", done: true, replay: true });
});

test("a failed turn is offered to who comes back, with what there was and the error, until the next request", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const stage = await streaming(chat, a, "half");
  stage.push({ type: "error", errorText: "boom" });
  expect(await a.done("r1")).toMatchObject({ body: "boom", error: true, outcome: "error", messageIds: ["u1"] });
  for (let tab = 0; tab < 2; tab++) {
    const b = await chat.connect();
    expect(b.frames).toEqual([]);
    expect(await b.probe("p")).toEqual({ type: RESUMING, id: "r1", probeId: "p" });
    b.ack("r1");
    const end = await b.done("r1");
    expect(end).toMatchObject({ body: "boom", error: true, done: true, messageIds: ["u1"] });
    expect(end).not.toHaveProperty("replay");
    const chunks = b.of("r1").slice(0, -1);
    expect(chunks.every(({ replay }) => replay === true)).toBe(true);
    expect(chunks.map(({ seq }) => seq)).toEqual(chunks.map((_, at) => at));
    expect(textOf(chunks)).toBe("half");
  }
  await exchange(chat, a, 2);
  expect(await a.probe()).toMatchObject({ type: NONE, reason: "idle" });
  expect(await chat.rows("SELECT 1 FROM perdure_stream")).toEqual([]);
});

test("a failure is offered also after a restart, and clear forgets it", async () => {
  const chat = await openChat();
  const stage = await streaming(chat, await chat.connect(), "half");
  stage.push({ type: "error", errorText: "boom" });
  await chat.stable();
  await chat.restart();
  const b = await chat.connect();
  expect(await b.probe()).toMatchObject({ type: RESUMING, id: "r1" });
  b.clear();
  expect(await b.probe()).toMatchObject({ type: NONE, reason: "idle" });
});

test("a log of a failed turn does not outlive the turns behind it", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const stage = await streaming(chat, a, "half");
  a.request("r2", [user("u2")]);
  await a.flushed();
  stage.push({ type: "error", errorText: "boom" });
  (await chat.stage()).say("fine").end();
  await a.done("r2");
  expect(await a.probe()).toMatchObject({ type: NONE, reason: "idle" });
  expect(await chat.rows("SELECT 1 FROM perdure_stream")).toEqual([]);
});

test("before the stream: pending on connect and on request, then the offer", async () => {
  const chat = await openChat({ slow: true });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  const b = await chat.connect();
  expect(b.frames).toEqual([{ type: PENDING, id: "r1" }]);
  expect(await b.probe("p")).toEqual({ type: PENDING, id: "r1", probeId: "p" });
  stage.open().say("one");
  await b.frame(({ type }) => type === RESUMING);
  await a.said("r1", "one");
  await b.flushed();
  expect(b.ofType(RESUMING)).toEqual([{ type: RESUMING, id: "r1" }]);
  expect(b.of("r1")).toEqual([]);
  b.ack("r1");
  await b.said("r1", "one");
  stage.end();
  await b.done("r1");
  expect(b.ofType(NONE)).toEqual([]);
});

test("the newest turn that waits is the one that is announced", async () => {
  const chat = await openChat({ slow: true });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const first = await chat.stage();
  a.request("r2", [user("u1"), user("u2")]);
  await a.flushed();
  expect(await a.probe()).toMatchObject({ type: PENDING, id: "r2" });
  first.open().end();
  // The stream that starts is the older one.
  expect(await a.frame(({ type }) => type === RESUMING)).toEqual({ type: RESUMING, id: "r1" });
  (await chat.stage()).open().end();
  await a.done("r2");
});

test("who waits for a turn that ends without a stream is let go, with no reason", async () => {
  const chat = await openChat({ slow: true });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  await chat.stage();
  const b = await chat.connect();
  a.cancel("r1");
  await b.done("r1");
  expect(b.ofType(NONE)).toEqual([{ type: NONE }]);
  const order = summary(b.frames);
  expect(order.indexOf(NONE)).toBeLessThan(order.indexOf("live done"));
});

test("who waits stays when a turn is skipped: its successor will stream", async () => {
  const chat = await openChat({ slow: true, messageConcurrency: "latest" });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const first = await chat.stage();
  a.request("r2", [user("u2")]);
  await a.flushed();
  const b = await chat.connect();
  expect(b.frames).toEqual([{ type: PENDING, id: "r2" }]);
  a.request("r3", [user("u2"), user("u3")]);
  expect(await a.done("r2")).toMatchObject({ outcome: "skipped" });
  await b.flushed();
  expect(b.ofType(NONE)).toEqual([]);
  first.open().say("one").end();
  expect(await b.frame(({ type }) => type === RESUMING)).toMatchObject({ id: "r1" });
  (await chat.stage()).open().end();
  await b.done("r3");
});

test("a long wait is announced again every 30 seconds, to those who still wait", async () => {
  const chat = await openChat({ slow: true, manual: true });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  const b = await chat.connect();
  const c = await chat.connect();
  await chat.clock.advance(29_000);
  await b.flushed();
  expect(b.ofType(PENDING)).toHaveLength(1);
  await chat.clock.advance(2_000);
  await b.flushed();
  expect(b.ofType(PENDING)).toEqual([
    { type: PENDING, id: "r1" },
    { type: PENDING, id: "r1" },
  ]);
  await c.close();
  await chat.clock.advance(60_000);
  await b.flushed();
  expect(b.ofType(PENDING)).toHaveLength(4);
  expect(a.ofType(PENDING)).toEqual([]);
  stage.open().say("one").end();
  await b.frame(({ type }) => type === RESUMING);
  await chat.clock.advance(120_000);
  await b.done("r1");
  expect(b.ofType(PENDING)).toHaveLength(4);
});
