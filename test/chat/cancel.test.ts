import { expect, test } from "vitest";
import { chunksOf, NONE, RESPONSE, textIn, textOf, user } from "./client.ts";
import { openChat } from "./harness.ts";

const doneFrames = (frames: readonly { id?: string; done?: boolean }[], id: string) =>
  frames.filter((frame) => frame.id === id && frame.done === true);

test("stop: the model hears of it, what there is stays, no more chunks, one end", async () => {
  const chat = await openChat();
  const [a, b] = [await chat.connect(), await chat.connect()];
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.say("half");
  await a.said("r1", "half");
  a.cancel("r1");
  await stage.aborted;
  stage.say(" and more");
  const end = { type: RESPONSE, id: "r1", body: "", done: true, outcome: "aborted", messageIds: ["u1"] };
  expect(await a.done("r1")).toEqual(end);
  expect(await b.done("r1")).toEqual(end);
  await chat.stable();
  const [, answer] = await chat.stored();
  expect(textIn(answer)).toBe("half");
  expect(answer?.parts.at(-1)).toMatchObject({ type: "text", state: "done" });
  expect(textOf(a.of("r1"))).toBe("half");
  expect(chat.responses).toMatchObject([{ requestId: "r1", status: "aborted", message: { id: answer?.id } }]);
  expect(await chat.rows("SELECT 1 FROM perdure_stream")).toEqual([]);
});

test("twice, and again when it is over, is the same as once", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).say("half");
  await a.said("r1", "half");
  a.cancel("r1");
  a.cancel("r1");
  await a.done("r1");
  a.cancel("r1");
  await a.flushed();
  await chat.stable();
  expect(doneFrames(a.frames, "r1")).toHaveLength(1);
  expect((await chat.agent()).abortRequest("r1")).toBe(false);
});

test("of a turn that nobody knows is ignored", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  a.cancel("r2");
  a.cancel("");
  await a.flushed();
  stage.say("fine").end();
  expect(await a.done("r1")).toMatchObject({ outcome: "completed" });
});

test("from another tab, also by one that resumed the stream", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.say("half");
  await a.said("r1", "half");
  const b = await chat.connect();
  b.ack("r1");
  await b.said("r1", "half");
  b.cancel("r1");
  await stage.aborted;
  expect(await a.done("r1")).toMatchObject({ outcome: "aborted" });
  expect(await b.done("r1")).toMatchObject({ outcome: "aborted" });
});

test("of a queued turn: it ends at once and never runs, the one that streams goes on", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.say("one ");
  await a.said("r1", "one ");
  const b = await chat.connect();
  b.request("r2", [user("u2")]);
  await b.flushed();
  b.cancel("r2");
  expect(await b.done("r2")).toMatchObject({ outcome: "aborted", messageIds: ["u2"] });
  // It has not taken the stream that it was offered: it must not get the middle of it.
  stage.say("two");
  await a.said("r1", "two");
  await b.flushed();
  expect(b.of("r1")).toEqual([]);
  stage.end();
  expect(await b.done("r1")).toMatchObject({ outcome: "completed" });
  await chat.stable();
  expect(chat.calls).toBe(1);
  expect((await chat.stored()).map((message) => textIn(message))).toEqual(["u1", "one two", "u2"]);
});

test("of one of several queued turns: the others keep their order", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  for (const n of [1, 2, 3, 4]) a.request(`r${n}`, [user(`u${n}`)]);
  const first = await chat.stage();
  a.cancel("r3");
  await a.done("r3");
  first.end();
  const order: string[] = [];
  for (let n = 0; n < 2; n++) {
    const stage = await chat.stage();
    order.push(stage.options.requestId);
    stage.end();
  }
  await a.done("r4");
  expect(order).toEqual(["r2", "r4"]);
  expect(chat.calls).toBe(3);
});

test("before the first chunk: nothing is stored but the question", async () => {
  const chat = await openChat({ slow: true });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  a.cancel("r1");
  expect(await a.done("r1")).toMatchObject({ outcome: "aborted" });
  stage.open().say("too late").end();
  await chat.stable();
  expect(await chat.stored()).toEqual([user("u1")]);
  expect(chunksOf(a.of("r1"))).toEqual([]);
});

test("of a continuation: the answer keeps what it had, and what was added", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")], { clientTools: [{ name: "where" }] });
  (await chat.stage()).call("c1", "where").end("tool-calls");
  await a.done("r1");
  a.result("c1", "Rome");
  const stage = await chat.stage();
  const { requestId } = stage.options;
  stage.say("You are in");
  await a.said(requestId, "You are in");
  a.cancel(requestId);
  expect(await a.done(requestId)).toMatchObject({ outcome: "aborted", continuation: true });
  const [, answer] = await chat.stored();
  expect(answer?.parts).toMatchObject([
    { type: "step-start" },
    { type: "tool-where", state: "output-available", output: "Rome" },
    { type: "step-start" },
    { type: "text", text: "You are in", state: "done" },
  ]);
  expect(await a.probe()).toMatchObject({ type: NONE, reason: "idle" });
});

test("a call that was cut by a stop has an end, and does not wait for a client", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.say("Let me look. ").call("c1").push({ type: "tool-input-start", toolCallId: "c2", toolName: "lookUp" });
  await a.frame(({ body }) => body?.includes('"c2"') === true);
  a.cancel("r1");
  await a.done("r1");
  const [, answer] = await chat.stored();
  const states = answer?.parts.flatMap((part) => ("toolCallId" in part ? [part.state] : []));
  expect(states).toEqual(["output-error", "output-error"]);
  expect((await chat.agent()).hasPendingInteraction()).toBe(false);
});

test("abortAllRequests ends what runs and what waits", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  await chat.stage();
  a.request("r2", [user("u2")]);
  await a.flushed();
  (await chat.agent()).abortAllRequests();
  expect(await a.done("r1")).toMatchObject({ outcome: "aborted" });
  expect(await a.done("r2")).toMatchObject({ outcome: "aborted" });
  await chat.stable();
  expect(chat.calls).toBe(1);
});

test("stop, then a new message at once: it is answered, after the partial answer", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).say("half");
  await a.said("r1", "half");
  a.cancel("r1");
  a.request("r2", [user("u1"), user("u2")]);
  const second = await chat.stage();
  expect(second.messages.map((message) => textIn(message))).toEqual(["u1", "half", "u2"]);
  second.say("ok").end();
  await a.done("r2");
  expect((await chat.stored()).map((message) => textIn(message))).toEqual(["u1", "half", "u2", "ok"]);
});

test("stop holds after a restart: no further call, whatever was under way", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).say("half");
  await a.said("r1", "half");
  a.request("r2", [user("u2")]);
  await a.flushed();
  const agent = await chat.agent();
  expect([agent.abortRequest("r1"), agent.abortRequest("r2")]).toEqual([true, true]);
  await chat.restart();
  await chat.stable();
  expect(chat.calls).toBe(1);
  expect((await chat.stored()).map((message) => textIn(message))).toEqual(["u1", "half", "u2"]);
});
