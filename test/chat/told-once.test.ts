import { expect, test } from "vitest";
import { type ChatClient, TRANSCRIPT } from "./client.ts";
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
