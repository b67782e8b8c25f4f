import { expect, test } from "vitest";
import { RESPONSE, textIn, user } from "./client.ts";
import { exchange, openChat } from "./harness.ts";
import { badFrames, badMessages, isRequestWithId, protoMessages } from "./poison.ts";

test("every kind of bad message is refused with a reason, nothing is stored, and the chat goes on", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const before = await exchange(chat, a, 1);
  expect(badMessages.length).toBeGreaterThanOrEqual(80);
  for (const [at, [name, message]] of badMessages.entries()) {
    const id = `bad-${at}`;
    a.request(id, [...before, message]);
    const end = await a.done(id);
    expect(end, name).toMatchObject({ type: RESPONSE, id, done: true, error: true, outcome: "error" });
    expect(end.body, name).toMatch(/messages\[2\]|has no id/);
    expect(a.of(id), name).toHaveLength(1);
  }
  expect(chat.calls).toBe(1);
  expect(await chat.stored()).toEqual(before);
  const [turns] = await chat.rows<{ n: number }>("SELECT count(*) AS n FROM perdure_turn");
  expect(turns?.n).toBe(1);
  await exchange(chat, a, 2, before);
});

test("bad messages are refused also alone, in an empty chat, and among good ones", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  for (const [at, [name, message]] of badMessages.entries()) {
    a.request(`alone-${at}`, [message]);
    a.request(`among-${at}`, [user(`good-${at}`), message, user(`better-${at}`)]);
    expect(await a.done(`alone-${at}`), name).toMatchObject({ error: true });
    expect(await a.done(`among-${at}`), name).toMatchObject({ error: true });
  }
  expect(chat.calls).toBe(0);
  expect(await chat.stored()).toEqual([]);
});

test("a __proto__ field is dropped on the way in, wherever it is", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  for (const [at, json] of protoMessages.entries()) {
    const body = `{"messages":[${json}],"__proto__":{"admin":true}}`;
    a.send({ type: "cf_agent_use_chat_request", id: `p${at}`, init: { method: "POST", body } });
    const stage = await chat.stage();
    expect(stage.options.body).toBeUndefined();
    stage.say("ok").end();
    expect(await a.done(`p${at}`)).toMatchObject({ outcome: "completed" });
  }
  expect(JSON.stringify(await chat.stored())).not.toContain("admin");
  const rows = await chat.rows<{ body: string }>("SELECT body FROM perdure_message");
  expect(JSON.stringify(rows)).not.toContain("__proto__");
  expect(({} as { admin?: boolean }).admin).toBeUndefined();
});

test("only the sender hears of it", async () => {
  const chat = await openChat();
  const [a, b] = [await chat.connect(), await chat.connect()];
  a.request("bad", [{ id: "x" }]);
  await a.done("bad");
  await b.flushed();
  expect(b.frames).toEqual([]);
});

test("frames that are garbage are ignored, but for requests with an id, which end with an error; the socket stays open", async () => {
  const chat = await openChat();
  const [a, b] = [await chat.connect(), await chat.connect()];
  const before = await exchange(chat, a, 1);
  await b.done("r1");
  const [sent, heard] = [a.frames.length, b.frames.length];
  for (const frame of badFrames) {
    a.raw(frame);
    await a.flushed();
    expect(a.isOpen, String(frame).slice(0, 80)).toBe(true);
  }
  expect(badFrames.length).toBeGreaterThanOrEqual(60);
  const answers = a.frames.slice(sent);
  expect(answers.map(({ type, done, error }) => [type, done, error])).toEqual(
    badFrames.filter(isRequestWithId).map(() => [RESPONSE, true, true]),
  );
  expect(answers.every(({ body }) => body !== "")).toBe(true);
  await b.flushed();
  expect(b.frames.length).toBe(heard);
  expect(await chat.stored()).toEqual(before);
  expect(chat.calls).toBe(1);
  await exchange(chat, a, 2, before);
});

test("garbage in the middle of a stream does not touch it", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  for (const [at, frame] of badFrames.entries()) {
    stage.say(`${at} `);
    a.raw(frame);
  }
  await a.flushed();
  stage.end();
  expect(await a.done("r1")).toMatchObject({ outcome: "completed" });
  expect(textIn((await chat.stored())[1])).toBe(badFrames.map((_, at) => `${at} `).join(""));
});

test("a bad transcript push changes nothing; what is good in it is taken", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  const before = await exchange(chat, a, 1);
  a.send({ type: "cf_agent_chat_messages", messages: badMessages.map(([, message]) => message) });
  a.send({
    type: "cf_agent_chat_messages",
    messages: [null, 7, ...badMessages.map(([, message]) => message), user("ok")],
  });
  await a.flushed();
  expect(await chat.stored()).toEqual([...before, user("ok")]);
});
