// What a client is given of a stream begins with its beginning, whatever happens while it comes, asks and takes it.
import { expect, test } from "vitest";
import {
  type ChatClient,
  chunksOf,
  connectTo,
  type Frame,
  NONE,
  PENDING,
  RECOVERING,
  RESPONSE,
  RESUMING,
  textOf,
  TRANSCRIPT,
  user,
} from "./client.ts";
import { openChat, type TestChat } from "./harness.ts";

const summary = (frames: readonly Frame[]) =>
  frames.map(({ type, done, error, replay, replayComplete, seq }) => {
    if (type !== RESPONSE) return type;
    if (replayComplete === true) return "caught up";
    return `${replay === true ? "replay" : "live"} ${done === true ? "done" : error === true ? "error" : seq}`;
  });

async function streaming(chat: TestChat, client: ChatClient, text: string) {
  client.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.say(text);
  await client.said("r1", text);
  return stage;
}

/** All numbered frames of a turn are a run from 0 on, replayed first. */
function checkRun(frames: readonly Frame[]): void {
  const numbered = frames.filter(({ seq }) => seq !== undefined);
  expect(numbered.map(({ seq }) => seq)).toEqual(numbered.map((_, at) => at));
  expect(chunksOf(numbered.slice(0, 1))[0]?.type).toBe("start");
}

test("a stream that ends before its offer is taken is given whole, before the end; a late ACK gets no more", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const stage = await streaming(chat, a, "one ");
  const b = await chat.connect();
  expect(b.frames).toEqual([{ type: RESUMING, id: "r1" }]);
  stage.say("two").end();
  await b.done("r1");
  await b.flushed();
  const count = a.of("r1").filter(({ seq }) => seq !== undefined).length;
  expect(summary(b.frames)).toEqual([
    RESUMING,
    ...Array.from({ length: count }, (_, at) => `replay ${at}`),
    "caught up",
    TRANSCRIPT,
    "live done",
  ]);
  checkRun(b.of("r1"));
  expect(textOf(b.of("r1"))).toBe("one two");
  const before = b.frames.length;
  b.ack("r1");
  b.ack("r1");
  await b.flushed();
  expect(b.frames).toHaveLength(before);
});

test("the same when it is stopped, by the one who was offered it", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  await streaming(chat, a, "one ");
  const b = await chat.connect();
  b.send({ type: "cf_agent_stream_resume_request", probeId: "p" });
  b.cancel("r1");
  expect(await b.done("r1")).toMatchObject({ outcome: "aborted" });
  const order = summary(b.frames);
  expect(order.slice(0, 3)).toEqual([RESUMING, RESUMING, "replay 0"]);
  expect(order.slice(-3)).toEqual(["caught up", TRANSCRIPT, "live done"]);
  checkRun(b.of("r1"));
});

test("stopped before its first chunk, by one who had asked for it: it is let go, and ends with nothing", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  await chat.stage();
  const b = await chat.connect();
  b.send({ type: "cf_agent_stream_resume_request", probeId: "p" });
  b.cancel("r1");
  await b.done("r1");
  expect(summary(b.frames)).toEqual([PENDING, RESUMING, TRANSCRIPT, "live error", "live done"]);
  // Others go on as they were.
  expect(summary(a.frames)).toEqual(["live done"]);
});

test("who comes before the first chunk and does not ask is offered the stream with the first chunk", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  const b = await chat.connect();
  expect(b.frames).toEqual([{ type: PENDING, id: "r1" }]);
  stage.say("one ");
  await a.said("r1", "one ");
  await b.flushed();
  expect(summary(b.frames)).toEqual([PENDING, RESUMING]);
  b.ack("r1");
  stage.say("two").end();
  await b.done("r1");
  checkRun(b.of("r1"));
  expect(textOf(b.of("r1"))).toBe("one two");
});

test("who comes before the first chunk and does not ask is not offered a stream that stays empty", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  await chat.stage();
  const b = await chat.connect();
  a.cancel("r1");
  await b.done("r1");
  expect(summary(b.frames)).toEqual([PENDING, TRANSCRIPT, NONE, "live done"]);
});

test("who waits for another turn has its own from the first chunk on, without asking", async () => {
  const chat = await openChat({ slow: true });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  await chat.stage();
  const b = await chat.connect();
  expect(b.frames).toEqual([{ type: PENDING, id: "r1" }]);
  b.request("r2", [user("u1"), user("u2")]);
  await b.flushed();
  a.cancel("r1");
  await b.done("r1");
  const stage = await chat.stage();
  stage.open().say("mine");
  await b.said("r2", "mine");
  stage.end();
  await b.done("r2");
  expect(b.ofType(RESUMING)).toEqual([]);
  checkRun(b.of("r2"));
});

test("an ACK for a turn that failed is not answered into the next one", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const stage = await streaming(chat, a, "half");
  const b = await chat.connect();
  stage.push({ type: "error", errorText: "boom" });
  expect(await b.done("r1")).toMatchObject({ error: true });
  a.request("r2", [user("u2")]);
  const next = await chat.stage();
  next.say("one");
  await b.said("r2", "one");
  const before = b.of("r1").length;
  b.ack("r1");
  await b.flushed();
  expect(b.of("r1")).toHaveLength(before);
  next.end();
  await b.done("r2");
  // Asked for anew, a failure is told anew: see "a failed turn is offered to who comes back".
});

test("a life that ends between offer and ACK: nothing live before the replay", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  await streaming(chat, a, "one ");
  const b = await chat.connect();
  expect(b.frames).toEqual([{ type: RESUMING, id: "r1" }]);
  await chat.nextLife();
  const stage = await chat.stage();
  stage.say("two ");
  await a.said("r1", "one two ");
  await b.flushed();
  expect(b.of("r1")).toEqual([]);
  b.ack("r1");
  await b.said("r1", "one two ");
  stage.say("three").end();
  await Promise.all([a.done("r1"), b.done("r1")]);
  for (const client of [a, b]) {
    checkRun(client.of("r1"));
    expect(textOf(client.of("r1"))).toBe("one two three");
  }
});

test("a life that ends while a client waits: it is offered the stream by the next one", async () => {
  const chat = await openChat({ slow: true });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  await chat.stage();
  const b = await chat.connect();
  expect(await b.probe("p")).toEqual({ type: PENDING, id: "r1", probeId: "p" });
  await chat.nextLife();
  const stage = await chat.stage();
  stage.open().say("one ");
  await b.frame(({ type }) => type === RESUMING);
  await a.said("r1", "one ");
  await b.flushed();
  expect(b.of("r1")).toEqual([]);
  b.ack("r1");
  stage.say("two").end();
  await b.done("r1");
  checkRun(b.of("r1"));
});

test("while it is decided how a cut turn goes on, an ACK is a replay, and those who wait hear nothing", async () => {
  const decided = Promise.withResolvers<void>();
  const chat = await openChat({ recover: () => decided.promise });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).push({ type: "start" }, { type: "start-step" }).call("c1");
  await a.frame(({ body }) => body?.includes("tool-input-available") === true);
  const b = await chat.connect();
  await chat.nextLife();
  b.ack("r1");
  await b.frame(({ replayComplete }) => replayComplete === true);
  checkRun(b.of("r1"));
  const c = await chat.connect();
  expect(await c.probe("p")).toEqual({ type: PENDING, id: "r1", probeId: "p" });
  decided.resolve();
  const stage = await chat.stage();
  await b.frame(({ body }) => body?.includes("tool-output-error") === true, "the end of the call");
  await c.flushed();
  expect(c.of("r1")).toEqual([]);
  expect(summary(c.frames)).toEqual([PENDING, PENDING, RESUMING, RECOVERING]);
  c.ack("r1");
  stage.say("on").end();
  await Promise.all([b, c].map((client) => client.done("r1")));
  for (const client of [b, c]) checkRun(client.of("r1"));
});

test("who was cut off before it took the stream is not told of the end alone when it comes back", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const stage = await streaming(chat, a, "one ");
  const b = await connectTo(`${chat.url}?_pk=b`);
  expect(summary(b.frames)).toEqual([RESUMING]);
  await b.close();
  const c = await connectTo(`${chat.url}?_pk=c`);
  c.ack("r1");
  await c.said("r1", "one ");
  await c.close();
  stage.end();
  await a.done("r1");
  for (const name of ["b", "c"]) {
    const back = await connectTo(`${chat.url}?_pk=${name}`);
    expect(back.frames).toEqual([]);
    expect(back.greeting?.messages).toEqual(await chat.stored());
    expect(await back.probe("p")).toEqual({ type: NONE, reason: "idle", probeId: "p" });
  }
});
