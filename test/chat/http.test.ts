import { expect, test } from "vitest";
import { eventually } from "../host/open-host.ts";
import { textIn, user } from "./client.ts";
import { readEvents } from "./events.ts";
import { exchange, openChat, type TestChat } from "./harness.ts";

const STREAM = { accept: "text/event-stream" };

function send(chat: TestChat, path: string, body?: unknown, headers: Record<string, string> = {}, method = "POST") {
  return fetch(`${chat.host.url}/agents/talk/one${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
}
const ask = (chat: TestChat, id: string, headers: Record<string, string> = {}) =>
  send(chat, "/chat", { message: user(`u-${id}`), requestId: id }, headers);
const look = (chat: TestChat, path: string, headers: Record<string, string> = {}) =>
  send(chat, path, undefined, headers, "GET");
const turnRows = (chat: TestChat) => chat.rows<{ id: string; status: string }>("SELECT id, status FROM perdure_turn");

test("a turn without a stream: accepted at once, then found in the conversation", async () => {
  const chat = await openChat();
  expect(await chat.stored()).toEqual([]);
  const response = await ask(chat, "r1");
  expect(response.status).toBe(202);
  expect(await response.json()).toMatchObject({ id: "r1" });
  expect(await (await look(chat, "/chat")).json()).toEqual({ running: "r1", waiting: [] });
  await ask(chat, "r2");
  expect(await (await look(chat, "/chat")).json()).toEqual({ running: "r1", waiting: ["r2"] });
  (await chat.stage()).say("one").end();
  (await chat.stage()).say("two").end();
  await chat.stable();
  expect((await chat.stored()).map(textIn)).toEqual(["u-r1", "one", "u-r2", "two"]);
  expect(await (await look(chat, "/chat")).json()).toEqual({ running: null, waiting: [] });
});

test("a turn with its stream: numbered chunks, the outcome, the end", async () => {
  const chat = await openChat();
  const reader = readEvents(await ask(chat, "r1", STREAM));
  expect(reader.response.headers.get("content-type")).toBe("text/event-stream");
  const stage = await chat.stage();
  stage.push({ type: "start" }, { type: "data-ping", transient: true, data: 1 });
  stage.say("Hel");
  await reader.said("Hel");
  stage.say("lo").end();
  expect(await reader.outcome()).toEqual({ requestId: "r1", outcome: "completed", messageIds: ["u-r1"] });
  expect(reader.text).toBe("Hello");
  const numbered = reader.events.filter(({ id }) => id !== undefined);
  expect(numbered.map(({ id }) => Number(id))).toEqual(numbered.map((_, i) => i));
  expect(reader.events.find(({ data }) => data !== "[DONE]" && data.type === "data-ping")?.id).toBeUndefined();
  expect(reader.events.at(-1)?.data).toBe("[DONE]");
  const [, answer] = await chat.stored();
  expect(numbered[0]?.data).toMatchObject({ type: "start", messageId: answer?.id });
});

test("a failed turn says so in its stream", async () => {
  const chat = await openChat();
  const reader = readEvents(await ask(chat, "r1", STREAM));
  (await chat.stage()).say("half").fail(new Error("model said no"));
  expect(await reader.outcome()).toMatchObject({ outcome: "error" });
  expect(reader.events.at(-3)?.data).toEqual({
    type: "error",
    errorText: expect.stringMatching(/^Something went wrong on the server/),
  });
  expect(chat.takeErrors()).toEqual(["model said no"]);
});

test("the same request again is the same turn, by its key or by its id", async () => {
  const chat = await openChat();
  const key = { "idempotency-key": "k1" };
  const first = await send(chat, "/chat", { message: user("u1") }, key);
  expect(await first.json()).toMatchObject({ id: "k1" });
  const stage = await chat.stage();
  const again = readEvents(await send(chat, "/chat", { message: user("u1") }, { ...key, ...STREAM }));
  stage.say("once").end();
  expect(await again.outcome()).toMatchObject({ requestId: "k1", outcome: "completed" });
  expect(again.text).toBe("once");
  const late = await send(chat, "/chat", { message: user("u9"), requestId: "k1" });
  expect([late.status, await late.json()]).toEqual([202, { id: "k1", status: "completed" }]);
  expect(chat.calls).toBe(1);
  expect((await chat.stored()).map(textIn)).toEqual(["u1", "once"]);
});

test("a body that is not understood is answered with the reason, and nothing is stored", async () => {
  const chat = await openChat();
  const bad: unknown[] = [
    "",
    "{",
    "null",
    "[]",
    "7",
    {},
    { messages: "no" },
    { messages: [7] },
    { messages: [{ role: "user", parts: [] }] },
    { messages: [{ id: "", role: "user", parts: [] }] },
    { messages: [{ id: "u1", role: "user", parts: "no" }] },
    { messages: [{ id: "u1", role: "king", parts: [] }] },
    { message: { id: "u1", role: "user" } },
    { message: user("u1"), requestId: "" },
    { message: user("u1"), requestId: 7 },
    { message: user("u1"), requestId: "x".repeat(10_000) },
    { message: user("u1"), clientTools: 7 },
    `{"messages":${"[".repeat(5000)}${"]".repeat(5000)}}`,
  ];
  for (const body of bad) {
    const response = await send(chat, "/chat", body);
    expect([body, response.status]).toEqual([body, 400]);
    const answer = (await response.json()) as { error: { code: string; message: string } };
    expect(answer.error.code).toBe("bad_input");
    expect(answer.error.message).not.toBe("");
  }
  expect(await turnRows(chat)).toEqual([]);
  expect(await chat.stored()).toEqual([]);
  expect(chat.calls).toBe(0);
});

test("methods that a route does not have, and routes that only look like ours", async () => {
  const chat = await openChat();
  expect((await send(chat, "/chat", {}, {}, "PUT")).status).toBe(405);
  expect((await look(chat, "/chat/r1/cancel")).status).toBe(405);
  expect((await look(chat, "/chat/tools/c1")).status).toBe(405);
  for (const path of ["/chatter", "/my-chat", "/chat/r1", "/chat/r1/other"]) {
    expect([path, (await look(chat, path)).status]).toEqual([path, 404]);
  }
});

test("following: from the start, behind a number, behind the last event id", async () => {
  const chat = await openChat();
  await ask(chat, "r1");
  const stage = await chat.stage();
  stage.say("a", "b");
  const whole = readEvents(await look(chat, "/chat/r1/stream"));
  await whole.said("ab");
  const at = whole.events.find(({ data }) => data !== "[DONE]" && data.delta === "a")?.id ?? "";
  const behind = readEvents(await look(chat, `/chat/r1/stream?after=${at}`));
  const back = readEvents(await look(chat, "/chat/r1/stream", { "last-event-id": at }));
  await Promise.all([behind.said("b"), back.said("b")]);
  stage.say("c").end();
  for (const reader of [whole, behind, back]) expect(await reader.outcome()).toMatchObject({ outcome: "completed" });
  expect([whole.text, behind.text, back.text]).toEqual(["abc", "bc", "bc"]);
  const ids = behind.events.flatMap(({ id }) => (id === undefined ? [] : [Number(id)]));
  expect(ids).toEqual(ids.map((_, i) => Number(at) + 1 + i));
});

test("a cursor that is none is refused", async () => {
  const chat = await openChat();
  await ask(chat, "r1");
  const stage = await chat.stage();
  stage.say("a");
  for (const after of ["", "x", "1.5", "-2", "NaN", "1e400"]) {
    expect([after, (await look(chat, `/chat/r1/stream?after=${after}`)).status]).toEqual([after, 400]);
  }
  const all = readEvents(await look(chat, "/chat/r1/stream?after=-1"));
  await all.said("a");
  expect(all.events[0]?.id).toBe("0");
  stage.end();
});

test("a cursor behind all that is stored, as after a loss of power, is told so while the turn goes on", async () => {
  const chat = await openChat();
  await ask(chat, "r1");
  const stage = await chat.stage();
  stage.say("a", "b", "c");
  await readEvents(await look(chat, "/chat/r1/stream")).said("abc");
  const [row] = await chat.rows<{ n: number }>("SELECT max(first + count) AS n FROM perdure_stream");
  const n = row?.n ?? 0;
  expect(n).toBeGreaterThan(2);
  const last = readEvents(await look(chat, `/chat/r1/stream?after=${n - 1}`));
  const beyond = await look(chat, `/chat/r1/stream?after=${n}`);
  expect(beyond.status).toBe(409);
  expect(await beyond.json()).toMatchObject({ error: { code: "conflict" } });
  await ask(chat, "r2");
  expect((await look(chat, "/chat/r2/stream?after=0")).status).toBe(409);
  stage.say("d").end();
  (await chat.stage()).end();
  expect(await last.outcome()).toMatchObject({ outcome: "completed" });
  expect(last.text).toBe("d");
  const over = readEvents(await look(chat, `/chat/r1/stream?after=${n + 9}`));
  expect(await over.outcome()).toMatchObject({ requestId: "r1", outcome: "completed" });
});

test("following a turn that waits, one that is over, and none", async () => {
  const chat = await openChat();
  const none = await look(chat, "/chat/nothing/stream");
  expect([none.status, await none.text()]).toEqual([204, ""]);
  await ask(chat, "r1");
  const first = await chat.stage();
  await ask(chat, "r2");
  const waiting = readEvents(await look(chat, "/chat/r2/stream"));
  first.say("one").end();
  (await chat.stage()).say("two").end();
  expect(await waiting.outcome()).toMatchObject({ requestId: "r2", outcome: "completed" });
  expect(waiting.text).toBe("two");
  const over = readEvents(await look(chat, "/chat/r1/stream?after=1"));
  expect(await over.outcome()).toMatchObject({ requestId: "r1", outcome: "completed" });
  expect((await look(chat, "/chat/nothing/stream")).status).toBe(204);
});

test("stop: the turn that runs, one that waits, none", async () => {
  const chat = await openChat();
  const [one, two] = [readEvents(await ask(chat, "r1", STREAM)), readEvents(await ask(chat, "r2", STREAM))];
  const stage = await chat.stage();
  stage.say("half");
  await one.said("half");
  expect(await (await send(chat, "/chat/r2/cancel")).json()).toEqual({ cancelled: true });
  expect(await two.outcome()).toMatchObject({ requestId: "r2", outcome: "aborted" });
  expect(await (await send(chat, "/chat/r1/cancel")).json()).toEqual({ cancelled: true });
  await stage.aborted;
  expect(await one.outcome()).toMatchObject({ requestId: "r1", outcome: "aborted" });
  expect(await (await send(chat, "/chat/r1/cancel")).json()).toEqual({ cancelled: false });
  expect(await (await send(chat, "/chat/never/cancel")).json()).toEqual({ cancelled: false });
  expect(chat.calls).toBe(1);
  expect((await chat.stored()).map(textIn)).toContain("half");
});

test("leaving does not stop the turn", async () => {
  const chat = await openChat();
  const reader = readEvents(await ask(chat, "r1", STREAM));
  const stage = await chat.stage();
  stage.say("half");
  await reader.said("half");
  await reader.leave();
  stage.say(" and whole");
  const back = readEvents(await look(chat, "/chat/r1/stream"));
  await back.said("half and whole");
  expect(stage.options.abortSignal.aborted).toBe(false);
  stage.end();
  expect(await back.outcome()).toMatchObject({ outcome: "completed" });
  expect((await chat.stored()).map(textIn)).toEqual(["u-r1", "half and whole"]);
});

test("forgetting ends the streams and leaves nothing", async () => {
  const chat = await openChat();
  const [one, two] = [readEvents(await ask(chat, "r1", STREAM)), readEvents(await ask(chat, "r2", STREAM))];
  (await chat.stage()).say("half");
  await one.said("half");
  expect(await (await send(chat, "/chat", undefined, {}, "DELETE")).json()).toEqual({ cleared: true });
  expect(await one.outcome()).toMatchObject({ outcome: "aborted" });
  expect(await two.outcome()).toMatchObject({ outcome: "skipped" });
  expect(await chat.stored()).toEqual([]);
  expect(await turnRows(chat)).toEqual([]);
});

test("tool calls: output, error, approval; first answer wins, and the turn goes on", async () => {
  const chat = await openChat();
  await ask(chat, "r1");
  (await chat.stage()).call("c1").call("c/2").ask("c3").end("tool-calls");
  await chat.stable();
  const answer = async (call: string, body: unknown) => {
    const response = await send(chat, `/chat/tools/${encodeURIComponent(call)}`, body);
    return [response.status, await response.json()];
  };
  for (const bad of [{}, [], "x", { approved: "yes" }, { errorText: 7 }]) {
    expect((await answer("c1", bad))[0]).toBe(400);
  }
  expect(await answer("c1", { output: null })).toEqual([200, { changed: true }]);
  expect(await answer("c1", { output: 2 })).toEqual([200, { changed: false }]);
  expect(await answer("c/2", { errorText: "broken" })).toEqual([200, { changed: true }]);
  expect(await answer("unknown", { output: 1 })).toEqual([200, { changed: false }]);
  expect(chat.calls).toBe(1);
  expect(await answer("c3", { approved: false, reason: "no" })).toEqual([200, { changed: true }]);
  const stage = await chat.stage();
  expect(stage.options.continuation).toBe(true);
  stage.say("done").end();
  await chat.stable();
  const [, message] = await chat.stored();
  const tools = message?.parts.filter((part) => "toolCallId" in part);
  expect(tools).toMatchObject([
    { state: "output-available", output: null },
    { state: "output-error", errorText: "broken" },
    { state: "output-denied", approval: { approved: false, reason: "no" } },
  ]);
  expect(textIn(message)).toBe("done");
  expect(await chat.stored()).toHaveLength(2);
});

test("sockets see what HTTP asks, and HTTP follows what sockets ask", async () => {
  const chat = await openChat();
  const client = await chat.connect();
  await exchange(chat, client, 1);
  await ask(chat, "r2");
  const stage = await chat.stage();
  stage.say("over ");
  await client.said("r2", "over ");
  stage.say("HTTP").end();
  await client.done("r2");
  client.request("r3", [user("u3")]);
  const next = await chat.stage();
  const reader = readEvents(await look(chat, "/chat/r3/stream"));
  next.say("by socket").end();
  expect(await reader.outcome()).toMatchObject({ requestId: "r3", outcome: "completed" });
  expect(reader.text).toBe("by socket");
});

test("a reader that comes late is given a log of any length", async () => {
  const chat = await openChat();
  await ask(chat, "r1");
  const stage = await chat.stage();
  const piece = "x".repeat(100_000);
  for (let i = 0; i < 120; i++) stage.say(piece);
  stage.say("!");
  await eventually(
    async () => (await chat.rows<{ n: number }>("SELECT sum(length(chunks)) AS n FROM perdure_stream"))[0]!.n > 12e6,
    "a long log",
  );
  const reader = readEvents(await look(chat, "/chat/r1/stream"));
  await reader.said("!");
  stage.end();
  expect(await reader.outcome()).toMatchObject({ outcome: "completed" });
  expect(reader.text.length).toBe(120 * piece.length + 1);
});

test("whoever waits for a turn that will not run any more does not keep the host from stopping", async () => {
  const chat = await openChat({ host: { graceMs: 1e9 } });
  await ask(chat, "r1");
  (await chat.stage()).call("c1").call("c2").end("tool-calls");
  await chat.stable();
  await send(chat, "/chat/tools/c1", { output: 1 });
  const [held] = await chat.rows<{ id: string }>("SELECT id FROM perdure_turn WHERE status = 'held'");
  const reader = readEvents(await look(chat, `/chat/${held?.id}/stream`));
  await chat.restart();
  await eventually(() => reader.end, "the end of a stream");
  await send(chat, "/chat/tools/c2", { output: 2 });
  const back = readEvents(await look(chat, `/chat/${held?.id}/stream`));
  (await chat.stage()).say("goes on").end();
  expect(await back.outcome()).toMatchObject({ outcome: "completed" });
});

test("the end of the host ends the streams", async () => {
  const chat = await openChat();
  const reader = readEvents(await ask(chat, "r1", STREAM));
  (await chat.stage()).say("half");
  await reader.said("half");
  await chat.restart();
  await eventually(() => reader.end, "the end of a stream");
  const back = readEvents(await look(chat, "/chat/r1/stream"));
  await back.said("half");
  (await chat.stage()).say(" whole").end();
  expect(await back.outcome()).toMatchObject({ outcome: "completed" });
  expect(back.text).toBe("half whole");
});

test("when a thousand requests wait, one more is told so, over HTTP and over a socket, and nothing of it is stored", async () => {
  const chat = await openChat();
  await ask(chat, "r1");
  const stage = await chat.stage();
  await ask(chat, "r2");
  await chat.rows(
    `WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 998)
     INSERT INTO perdure_turn (id, status, trigger, continuation, message_ids, not_before, created_at, session)
     SELECT 'copy-' || n, status, trigger, continuation, message_ids, not_before, created_at, session
     FROM perdure_turn, number WHERE id = 'r2'`,
  );
  const before = await chat.rows("SELECT id FROM perdure_turn UNION ALL SELECT id FROM perdure_message");
  expect(before.length).toBeGreaterThan(1_000);
  const refused = await ask(chat, "r3");
  expect(refused.status).toBe(503);
  expect(await refused.json()).toMatchObject({ error: { code: "limit" } });
  const client = await chat.connect();
  client.request("r4", [user("u4")]);
  expect(await client.done("r4")).toMatchObject({
    error: true,
    body: expect.stringContaining("1000 requests are already waiting"),
  });
  expect(await chat.rows("SELECT id FROM perdure_turn UNION ALL SELECT id FROM perdure_message")).toEqual(before);
  expect(chat.takeErrors()).toHaveLength(2);
  await chat.rows("DELETE FROM perdure_turn WHERE id LIKE 'copy-%'");
  expect((await ask(chat, "r5")).status).toBe(202);
  stage.end();
});
