import { expect, test } from "vitest";
import { type ChatClient, TRANSCRIPT, UPDATED, user } from "./client.ts";
import { exchange, openChat } from "./harness.ts";

/** How often a client was sent the conversation. */
const told = (client: ChatClient) => client.ofType(TRANSCRIPT).length;

test("who sends only what is new is told the conversation again once, not with every message", async () => {
  const chat = await openChat();
  await exchange(chat, await chat.connect(), 1);
  const lean = await chat.connect();
  await lean.flushed();
  const before = told(lean);
  for (const n of [2, 3, 4, 5]) await exchange(chat, lean, n);
  await lean.flushed();
  expect(told(lean) - before).toBe(1);
  expect(await chat.stored()).toHaveLength(10);
});

test("who shows all is told again only while what it shows is older than what it was told", async () => {
  const chat = await openChat();
  const all = await exchange(chat, await chat.connect(), 1);
  const client = await chat.connect();
  await client.flushed();
  const before = told(client);
  let shown = all;
  for (const n of [2, 3, 4]) shown = await exchange(chat, client, n, shown);
  await client.flushed();
  expect(told(client) - before).toBe(1);
});

test("who has watched all of an answer is told it as it is stored, not the conversation; who came late is told all", async () => {
  const chat = await openChat();
  const asker = await chat.connect();
  await exchange(chat, asker, 1);
  const watcher = await chat.connect();
  await watcher.flushed();
  const before = told(watcher);
  asker.request("r2", [user("u2")]);
  const stage = await chat.stage();
  stage.say("some");
  await watcher.said("r2", "some");
  const late = await chat.connect();
  await late.flushed();
  const lateBefore = told(late);
  stage.say(" more").end();
  await Promise.all([watcher.done("r2"), late.done("r2")]);
  // That somebody asked, and nothing else of the conversation.
  expect(told(watcher) - before).toBe(1);
  const stored = await chat.stored();
  expect(watcher.ofType(UPDATED).at(-1)?.message).toEqual(stored.at(-1));
  expect(told(late) - lateBefore).toBe(1);
  expect(late.ofType(TRANSCRIPT).at(-1)?.messages).toEqual(stored);
});

test("who has watched an answer is told the conversation where more than that answer has changed", async () => {
  const chat = await openChat();
  const [asker, watcher] = [await chat.connect(), await chat.connect()];
  asker.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.say("one");
  await watcher.said("r1", "one");
  asker.request("r2", [user("u1"), user("u2")]);
  await asker.flushed();
  stage.end();
  await watcher.done("r1");
  (await chat.stage()).say("two").end();
  await watcher.done("r2");
  await watcher.flushed();
  expect(watcher.ofType(TRANSCRIPT).at(-1)?.messages).toEqual(await chat.stored());
});

/** A conversation that is not told whole with each message. */
const LONG = "long ".repeat(4_000);

test("who shows a long conversation is told what is said in it, and nothing twice", async () => {
  const chat = await openChat();
  const asker = await chat.connect();
  asker.request("r1", [user("u1", LONG)]);
  (await chat.stage()).say("one").end();
  await asker.done("r1");
  const watcher = await chat.connect();
  await watcher.flushed();
  const before = watcher.frames.length;
  for (const n of [2, 3]) {
    asker.request(`r${n}`, [...(await chat.stored()), user(`u${n}`)]);
    (await chat.stage()).say(`answer ${n}`).end();
    await watcher.done(`r${n}`);
  }
  const frames = watcher.frames.slice(before);
  expect(frames.filter(({ type }) => type === TRANSCRIPT)).toEqual([]);
  expect(frames.flatMap(({ type, message }) => (type === UPDATED ? [message] : []))).toEqual(
    (await chat.stored()).slice(2),
  );
  // What it is told to begin with is let go of, and no turn has ended but those that were asked for.
  expect(frames.flatMap(({ id, done }) => (done === true ? [id] : []))).toEqual(["r2", "r3"]);
  expect(JSON.stringify(frames)).not.toContain(LONG);
});

test("a long conversation that has changed otherwise is told whole", async () => {
  const chat = await openChat();
  const asker = await chat.connect();
  asker.request("r1", [user("u1", LONG)]);
  (await chat.stage()).say("one").end();
  await asker.done("r1");
  const watcher = await chat.connect();
  await watcher.flushed();
  asker.request("r2", [user("u1", "edited")]);
  (await chat.stage()).say("two").end();
  await watcher.done("r2");
  expect(watcher.ofType(TRANSCRIPT).at(-1)?.messages?.[0]).toMatchObject({ id: "u1", parts: [{ text: "edited" }] });
});
