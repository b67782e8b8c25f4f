import { expect, test } from "vitest";
import { CLEAR, NONE, RESPONSE, TRANSCRIPT, textIn, user } from "./client.ts";
import { exchange, openChat, type TestChat } from "./harness.ts";

const TABLES = [
  "perdure_message",
  "perdure_turn",
  "perdure_stream",
  "perdure_session WHERE body IS NOT NULL",
  "perdure_tool_call",
];

async function rowCounts(chat: TestChat): Promise<number[]> {
  const counts = await Promise.all(
    TABLES.map((table) => chat.rows<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)),
  );
  return counts.map(([row]) => row?.n ?? -1);
}
const NOTHING = TABLES.map(() => 0);

test("the others are told, the sender is not, and no row is left", async () => {
  const chat = await openChat({ approvalTimeoutMs: 1e9 });
  const [a, b] = [await chat.connect(), await chat.connect()];
  a.request("r1", [user("u1")], { city: "Rome", clientTools: [{ name: "where" }] });
  (await chat.stage()).ask("c1").end("tool-calls");
  await a.done("r1");
  expect(await rowCounts(chat)).toEqual([2, 1, 0, 1, 1]);
  a.clear();
  await b.frame(({ type }) => type === CLEAR);
  await a.flushed();
  expect(a.ofType(CLEAR)).toEqual([]);
  expect(await rowCounts(chat)).toEqual(NOTHING);
  expect(await chat.stored()).toEqual([]);
  expect(await b.probe()).toMatchObject({ type: NONE, reason: "idle" });
});

test("while a turn streams: no more chunks, one end, and nothing of it is written afterwards", async () => {
  const chat = await openChat();
  const [a, b] = [await chat.connect(), await chat.connect()];
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.say("half");
  await Promise.all([a.said("r1", "half"), b.said("r1", "half")]);
  a.clear();
  await stage.aborted;
  stage.say("too late").end();
  expect(await a.done("r1")).toMatchObject({ outcome: "aborted" });
  await b.done("r1");
  await chat.stable();
  await b.flushed();
  for (const client of [a, b]) {
    expect(client.of("r1").filter(({ done }) => done)).toHaveLength(1);
    expect(client.of("r1").some(({ body }) => body?.includes("too late") === true)).toBe(false);
  }
  const cleared = b.frames.findIndex(({ type }) => type === CLEAR);
  expect(b.frames.slice(cleared).filter(({ type, done }) => type === RESPONSE && done === false)).toEqual([]);
  expect(await rowCounts(chat)).toEqual(NOTHING);
  expect(chat.responses).toEqual([]);
});

test("while a turn has not begun to stream, and somebody waits for it", async () => {
  const chat = await openChat({ slow: true });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  const b = await chat.connect();
  a.clear();
  await b.frame(({ type }) => type === NONE);
  expect(await a.done("r1")).toMatchObject({ outcome: "aborted" });
  stage.open().say("too late").end();
  await chat.stable();
  expect(await rowCounts(chat)).toEqual(NOTHING);
});

test("queued turns end as skipped and never run", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  await chat.stage();
  a.request("r2", [user("u2")]);
  a.request("r3", [user("u3")]);
  await a.flushed();
  a.clear();
  expect(await a.done("r1")).toMatchObject({ outcome: "aborted" });
  expect(await a.done("r2")).toMatchObject({ outcome: "skipped", messageIds: ["u2"] });
  expect(await a.done("r3")).toMatchObject({ outcome: "skipped" });
  await chat.stable();
  expect(chat.calls).toBe(1);
  expect(await rowCounts(chat)).toEqual(NOTHING);
});

test("a continuation that waits for answers is gone, and a late answer changes nothing", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).call("c1").call("c2").end("tool-calls");
  await a.done("r1");
  a.result("c1", 1);
  await a.flushed();
  a.clear();
  a.result("c2", 2);
  a.approve("c2", true);
  await a.flushed();
  await chat.stable();
  expect(chat.calls).toBe(1);
  expect(await rowCounts(chat)).toEqual(NOTHING);
});

test("what is sent right after a clear is answered, and does not count what was before as overlapping", async () => {
  const chat = await openChat({ messageConcurrency: "drop" });
  const a = await chat.connect();
  a.request("r1", [user("u1")], { city: "Rome" });
  (await chat.stage()).say("half");
  await a.said("r1", "half");
  a.clear();
  a.request("r2", [user("u2")]);
  const second = await chat.stage();
  expect(second.messages).toEqual([user("u2")]);
  expect(second.options.body).toBeUndefined();
  second.say("new").end();
  expect(await a.done("r2")).toMatchObject({ outcome: "completed" });
  expect((await chat.stored()).map((message) => textIn(message))).toEqual(["u2", "new"]);
});

test("a tab that connects while the cleared turn winds down is not offered it", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).say("half");
  await a.said("r1", "half");
  const agent = await chat.agent();
  agent.clearMessages();
  const b = await chat.connect();
  expect(await b.probe()).toMatchObject({ type: NONE });
  await a.done("r1");
});

test("server code clears too: then everyone is told", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  await exchange(chat, a, 1);
  (await chat.agent()).clearMessages();
  await a.frame(({ type }) => type === CLEAR);
  expect(await chat.stored()).toEqual([]);
});

test("an empty chat can be cleared, and cleared twice", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.clear();
  a.clear();
  await a.flushed();
  await exchange(chat, a, 1);
  expect(await chat.stored()).toHaveLength(2);
});

test("pushing an empty transcript is not a clear", async () => {
  const chat = await openChat();
  const [a, b] = [await chat.connect(), await chat.connect()];
  const before = await exchange(chat, a, 1);
  a.send({ type: TRANSCRIPT, messages: [] });
  a.send({ type: TRANSCRIPT, messages: [user("u1", "edited")] });
  a.send({
    type: TRANSCRIPT,
    messages: [user("n1", "noted"), { ...before[1], parts: [{ type: "text", text: "forged" }] }],
  });
  await a.flushed();
  const stored = await chat.stored();
  expect(stored.map((message) => textIn(message))).toEqual(["edited", "answer 1", "noted"]);
  await b.frame(({ type, messages }) => type === TRANSCRIPT && messages?.length === 3);
  expect(chat.calls).toBe(1);
});
