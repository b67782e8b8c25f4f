import { expect, onTestFinished, test } from "vitest";
import { eventually, tempDir } from "../host/open-host.ts";
import { PerdureError } from "perdure";
import { subscribe } from "perdure/node";
import { manualClock } from "perdure/testing";
import { type ChatClient, textIn, TRANSCRIPT, user } from "./client.ts";
import { openChat } from "./harness.ts";
import { roomOf } from "./room.ts";

/** Room for the tables and a little more. */
const LIMIT = 400_000;

const small = () => ({ storage: undefined, dir: tempDir(), limits: { databaseBytes: LIMIT } });

test("a message that cannot be stored is refused, and the chat goes on with what fits", async () => {
  const chat = await openChat({ host: small() });
  const a = await chat.connect();
  a.request("r1", [user("u1", "x".repeat(600_000))]);
  expect(await a.done("r1")).toMatchObject({
    error: true,
    outcome: "error",
    body: expect.stringContaining("could not be stored") as string,
  });
  expect(chat.calls).toBe(0);
  expect(await chat.stored()).toEqual([]);
  a.request("r2", [user("u2")]);
  (await chat.stage()).say("fits").end();
  expect(await a.done("r2")).toMatchObject({ outcome: "completed" });
  expect(await chat.stored()).toHaveLength(2);
  expect(chat.takeErrors()).not.toEqual([]);
});

test("an answer that cannot be stored ends its turn with an error, once, and is not paid for again", async () => {
  const chat = await openChat({ host: small() });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.say("small ");
  await a.said("r1", "small ");
  stage.say("y".repeat(500_000)).end();
  expect(await a.done("r1")).toMatchObject({ error: true, outcome: "error" });
  a.request("r2", [user("u2")]);
  const second = await chat.stage();
  expect(second.options.requestId).toBe("r2");
  second.say("fits").end();
  expect(await a.done("r2")).toMatchObject({ outcome: "completed" });
  await chat.stable();
  expect(chat.calls).toBe(2);
  expect(a.of("r1").filter(({ done }) => done)).toHaveLength(1);
  expect((await chat.stored()).map((message) => textIn(message).slice(0, 6))).toEqual(["u1", "small ", "u2", "fits"]);
  expect(chat.takeErrors()).not.toEqual([]);
});

test("an answer that the app's own cleaning does not let through ends its turn with an error, once", async () => {
  const chat = await openChat({
    sanitize(message) {
      if (textIn(message).includes("secret")) throw new Error("not this one");
      return message;
    },
  });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).say("a secret").end();
  expect(await a.done("r1")).toMatchObject({ error: true, body: "Failed to save the response." });
  await chat.stable();
  expect(chat.calls).toBe(1);
  expect(a.of("r1").filter(({ done }) => done)).toHaveLength(1);
  expect(chat.takeErrors()).toContain("not this one");
  await chat.restart();
  await chat.stable();
  expect(chat.calls).toBe(1);
});

test("who comes while an answer waits for room is given all of it, also what was said before", async () => {
  const clock = manualClock();
  const ticks = setInterval(() => void clock.advance(50), 5);
  onTestFinished(() => clearInterval(ticks));
  const chat = await openChat({ host: { clock } });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.say("before ");
  await a.said("r1", "before ");
  const { host } = (await roomOf(chat)).chat;
  host.tx = () => {
    throw new PerdureError("disk_full", "No room.");
  };
  stage.say("lost ").end();
  await eventually(() => chat.takeErrors().includes("No room."));
  const b = await chat.connect();
  await b.flushed();
  Reflect.deleteProperty(host, "tx");
  (await chat.stage()).say("after").end();
  await b.done("r1");
  const said = b.of("r1").map(({ body }) => /"delta":"([^"]*)"/.exec(body ?? "")?.[1] ?? "");
  expect(said.join("")).toBe("before after");
});

test("who asked in a life that ran out of room hears in the next one that its message became part of another", async () => {
  const clock = manualClock();
  const ticks = setInterval(() => void clock.advance(50), 5);
  onTestFinished(() => clearInterval(ticks));
  const lives: string[] = [];
  onTestFinished(subscribe("agent:evicted", ({ agent }) => void lives.push(agent)));
  const chat = await openChat({ messageConcurrency: "merge", host: { clock, idleMs: 500 } });
  const [a, b] = [await chat.connect(), await chat.connect()];
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.say("before ");
  await a.said("r1", "before ");
  a.request("r2", [user("u1"), user("u2")]);
  await a.flushed();
  const { host } = (await roomOf(chat)).chat;
  host.tx = () => {
    throw new PerdureError("disk_full", "No room.");
  };
  stage.say("lost ").end();
  await eventually(() => lives.length > 0, "the end of the life");
  chat.takeErrors();
  b.request("r3", [user("u3")]);
  expect(await a.done("r2")).toMatchObject({ outcome: "skipped" });
  (await chat.stage()).say("after").end();
  await a.done("r1");
  (await chat.stage()).say("both").end();
  expect(await b.done("r3")).toMatchObject({ outcome: "completed" });
});

const UNSTORED: readonly (readonly [what: string, act: (client: ChatClient) => void])[] = [
  ["a clear", (client) => client.clear()],
  ["a push", (client) => client.send({ type: TRANSCRIPT, messages: [user("u1"), user("u2")] })],
  ["a yes", (client) => client.approve("c1", true)],
];

test.each(UNSTORED)(
  "%s that cannot be stored: who shows it as done is given the conversation as it is",
  async (_, act) => {
    const chat = await openChat();
    const a = await chat.connect();
    a.request("r1", [user("u1")]);
    (await chat.stage()).ask("c1").end("tool-calls");
    await a.done("r1");
    const { host } = (await roomOf(chat)).chat;
    const before = a.ofType(TRANSCRIPT).length;
    host.tx = () => {
      throw new PerdureError("disk_full", "No room.");
    };
    act(a);
    await a.flushed();
    Reflect.deleteProperty(host, "tx");
    const told = a.ofType(TRANSCRIPT).slice(before);
    expect(told.map(({ messages }) => messages?.length)).toEqual([2]);
    expect(JSON.stringify(told[0]?.messages?.[1])).toContain("approval-requested");
    expect(chat.takeErrors()).toContain("No room.");
  },
);
