import { expect, test } from "vitest";
import { chunksOf, RESPONSE, textIn, TRANSCRIPT, UPDATED, user } from "./client.ts";
import { boundary } from "./desk.ts";
import { openChat } from "./harness.ts";
import { roomOf } from "./room.ts";

/** A turn that streams, and two tabs. */
async function talking() {
  const chat = await openChat({ messageConcurrency: "steer" });
  const [a, b] = [await chat.connect(), await chat.connect()];
  a.request("r1", [user("u1")]);
  const stage = (await chat.stage()).say("one");
  await b.said("r1", "one");
  return { chat, a, b, stage };
}

test("an agent whose steps are its own business: the same as queue", async () => {
  const { chat, a, b, stage } = await talking();
  b.request("r2", [user("u1"), user("u2")]);
  await b.flushed();
  stage.end();
  const second = await chat.stage();
  expect(second.messages.map(textIn)).toEqual(["u1", "one", "u2"]);
  second.say("two").end();
  expect(await a.done("r2")).toMatchObject({ outcome: "completed" });
  expect((await chat.stored()).map(textIn)).toEqual(["u1", "one", "u2", "two"]);
});

test("taken: every tab sees it in the stream, hears of its end, and has the same conversation", async () => {
  const { chat, a, b, stage } = await talking();
  b.request("r2", [user("u1"), user("u2", "in Texas")]);
  await b.flushed();
  const { chat: room } = await roomOf(chat);
  expect(boundary(room, 3)).toEqual(["u2"]);
  for (const client of [a, b]) {
    expect(await client.done("r2")).toEqual({
      type: RESPONSE,
      id: "r2",
      body: "",
      done: true,
      outcome: "completed",
      messageIds: ["u2"],
    });
    const updated = await client.frame(({ type, message }) => type === UPDATED && message?.id === "u2");
    expect(updated.message?.metadata).toMatchObject({ perdure: { steeredInto: expect.any(String) } });
  }
  stage.say(" more").end();
  await a.done("r1");
  await b.done("r1");
  const steering = { type: "steering-message", id: "u2", parts: [{ type: "text", text: "in Texas" }] };
  for (const client of [a, b]) expect(chunksOf(client.of("r1"))).toContainEqual(steering);
  const stored = await chat.stored();
  expect(stored.map(({ role }) => role)).toEqual(["user", "user", "assistant"]);
  expect(stored[2]?.parts).toContainEqual(steering);
  for (const client of [a, b])
    expect(
      client
        .ofType(TRANSCRIPT)
        .at(-1)
        ?.messages?.map(({ id }) => id),
    ).toEqual(stored.map(({ id }) => id));
  expect(chat.calls).toBe(1);
});

test("a tab that comes late is given it with the rest of the stream", async () => {
  const { chat, b, stage } = await talking();
  b.request("r2", [user("u1"), user("u2")]);
  await b.flushed();
  boundary((await roomOf(chat)).chat);
  const c = await chat.connect();
  c.ack("r1");
  await c.said("r1", "one");
  expect(chunksOf(c.of("r1")).map(({ type }) => type)).toContain("steering-message");
  stage.end();
  await c.done("r1");
});

test("a restart after it was taken: the answer goes on, and the message is not answered again", async () => {
  const { chat, b } = await talking();
  b.request("r2", [user("u1"), user("u2")]);
  await b.flushed();
  boundary((await roomOf(chat)).chat);
  await chat.restart();
  await chat.agent();
  (await chat.stage()).say(" and on").end();
  await chat.stable();
  expect(chat.calls).toBe(2);
  const receipt = await fetch(`${chat.host.url}/agents/talk/one/chat/inbox/r2`);
  expect(await receipt.json()).toEqual({
    requestId: "r2",
    status: "completed",
    receipt: { turnId: "r1", step: 1, callId: "call-1" },
  });
});

test("a client that asks for its taken request again hears of its end", async () => {
  const { chat, b, stage } = await talking();
  b.request("r2", [user("u1"), user("u2")]);
  await b.flushed();
  boundary((await roomOf(chat)).chat);
  const c = await chat.connect();
  c.request("r2", [user("u1"), user("u2")]);
  expect(await c.done("r2")).toMatchObject({ outcome: "completed" });
  stage.end();
  await chat.stable();
  expect(chat.calls).toBe(1);
});

test("an answer that took something in can be gone on with, and a client's tool in it answered", async () => {
  const { chat, a, b, stage } = await talking();
  b.request("r2", [user("u1"), user("u2")]);
  await b.flushed();
  boundary((await roomOf(chat)).chat);
  stage.call("c1").end("tool-calls");
  await a.done("r1");
  a.result("c1", 42);
  const next = await chat.stage();
  expect(next.options.continuation).toBe(true);
  next.say("it is 42").end();
  await chat.stable();
  expect((await chat.stored()).map(({ role }) => role)).toEqual(["user", "user", "assistant"]);
});

test("an edit of what was taken makes it a question of its own", async () => {
  const { chat, a, stage } = await talking();
  a.request("r2", [user("u1"), user("u2")]);
  await a.flushed();
  boundary((await roomOf(chat)).chat);
  stage.end();
  await a.done("r1");
  const [, taken] = await chat.stored();
  a.request("r3", [user("u1"), { ...taken, ...user("u2", "anew") }]);
  const second = await chat.stage();
  expect(second.messages.map(textIn)).toEqual(["u1", "anew"]);
  expect(second.messages[1]?.metadata).toBeUndefined();
  second.end();
  await a.done("r3");
});
