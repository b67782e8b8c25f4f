import { expect, test } from "vitest";
import { eventually, tempDir } from "../host/open-host.ts";
import { lastText, loadPage, openChat, startExample } from "./run-example.ts";

/** The examples with one chat agent, and the last words of what its script answers. */
const chats = {
  "minimal-chat": "a model answers.",
  express: "an Express app.",
  hono: "a Hono app.",
  "plain-html": "no framework and no build.",
};

test.each(Object.entries(chats))("%s: a page, and a chat that outlives the process", async (name, end) => {
  const dir = tempDir();
  const first = await startExample(dir, name);
  const { html, modules } = await loadPage(first.url);
  expect(html).toContain("<title>");
  expect(modules.join("")).toContain("cf_agent_use_chat_request");

  const chat = await openChat(first.url, "chat-agent");
  const seen = new Set<string>();
  chat.subscribe(() => seen.add(lastText(chat)));
  await chat.sendMessage({ text: "hello" });
  const answer = lastText(chat);
  expect(answer).toMatch(/^You said "hello"\./);
  expect(answer.endsWith(end), answer).toBe(true);
  // It came in pieces: some of what was shown was only its beginning.
  expect([...seen].some((text) => text !== "" && text !== answer && answer.startsWith(text))).toBe(true);
  expect(chat.getSnapshot().status).toBe("ready");

  first.child.kill("SIGINT");
  expect(await first.exited).toBe(0);
  const again = await openChat((await startExample(dir, name)).url, "chat-agent");
  await eventually(() => again.messages.length === 2, "the conversation is there again");
  expect(lastText(again)).toBe(answer);
});

test("minimal-chat: stop stops, and what was said stays", async () => {
  const { url } = await startExample(tempDir(), "minimal-chat");
  const chat = await openChat(url, "chat-agent");
  const turn = chat.sendMessage({ text: "hello" });
  await eventually(() => lastText(chat).startsWith("You"), "the first word");
  await chat.stop();
  await turn;
  const answer = lastText(chat);
  expect(answer.endsWith(chats["minimal-chat"])).toBe(false);
  const other = await openChat(url, "chat-agent");
  await eventually(() => other.messages.length === 2, "another page has the conversation");
  expect(lastText(other).endsWith(chats["minimal-chat"])).toBe(false);
});

test("minimal-chat: an answer that a kill cut off goes on after a restart", async () => {
  const dir = tempDir();
  const first = await startExample(dir, "minimal-chat");
  const chat = await openChat(first.url, "chat-agent");
  void chat.sendMessage({ text: "hello" });
  await eventually(() => lastText(chat).startsWith("You said"), "the first words");
  first.child.kill("SIGKILL");
  await first.exited;

  const again = await openChat((await startExample(dir, "minimal-chat")).url, "chat-agent");
  await eventually(() => lastText(again).endsWith(chats["minimal-chat"]), "the whole answer");
  expect(lastText(again)).toMatch(/^You said "hello"\. I am a script;/);
  expect(again.messages).toHaveLength(2);
});
