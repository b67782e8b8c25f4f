// The page's side: what useAgentChat takes and gives, data that goes with a request, several pages at once.
import { useAgentChat } from "@cloudflare/ai-chat/react";
import { convertToModelMessages, type LanguageModel, streamText, type UIMessage } from "ai";
import { AIChatAgent, type ChatTurnOptions } from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { startHost } from "../../clients/harness.ts";
import { until } from "../../support/until.ts";
import { handle, linesOf, open, stored, useTheAgent } from "./page.tsx";

interface Env {
  readonly AI: LanguageModel;
}

type Chat = ReturnType<typeof useAgentChat>;
type Options = Omit<Parameters<typeof useAgentChat>[0], "agent">;

/** What a turn was asked with. */
const bodies: unknown[] = [];

class ChatAgent extends AIChatAgent<Env> {
  override async onChatMessage(_onFinish: unknown, options: ChatTurnOptions) {
    bodies.push(options.body);
    const result = streamText({
      model: this.env.AI,
      messages: await convertToModelMessages(this.messages),
      abortSignal: options.abortSignal,
    });
    return result.toUIMessageStreamResponse();
  }
}

async function start(script: Script = ({ userText }) => `About ${userText}.`) {
  bodies.length = 0;
  return startHost({ agents: { ChatAgent }, env: { AI: scriptedModel(script) } });
}

/** Opens a page with the hook on it. */
async function openChat(host: { readonly port: number }, options: Options = {}) {
  const chat = handle<Chat>();
  function Page() {
    const agent = useTheAgent(host);
    chat.current = useAgentChat({ agent, ...options });
    return null;
  }
  const page = await open(<Page />);
  await chat.when(({ status }) => status === "ready");
  return Object.assign(chat, {
    page,
    async say(text: string) {
      const before = chat.get().messages.length;
      void chat.get().sendMessage({ text });
      await chat.when(({ status, messages }) => status === "ready" && messages.length === before + 2);
    },
  });
}

test("what the hook gives: messages, status, clearHistory and setMessages", async () => {
  const host = await start();
  const chat = await openChat(host);
  await chat.say("trees");
  // `status` is "ready" where the text says "idle": that is the AI SDK's word.
  expect([chat.get().status, linesOf(chat.get().messages)]).toEqual([
    "ready",
    ["user: trees", "assistant: About trees."],
  ]);
  const note: UIMessage = { id: "note", role: "user", parts: [{ type: "text", text: "noted" }] };
  chat.get().setMessages((messages) => [...messages, note]);
  // Synced to the server: a user's message is taken. An answer that a page makes up is not.
  await until(() => chat.get().messages.length === 3);
  await expect.poll(async () => linesOf(await stored(host))).toEqual(linesOf(chat.get().messages));
  chat.get().clearHistory();
  await chat.when(({ messages }) => messages.length === 0);
  await expect.poll(() => stored(host)).toEqual([]);
});

test("body: an object for every request, or a function that is asked each time", async () => {
  const host = await start();
  const still = await openChat(host, { body: { timezone: "Europe/Vienna", userId: "u-7" } });
  await still.say("one");
  await still.page.close();
  let asked = 0;
  const getAuthToken = () => `token-${++asked}`;
  const lively = await openChat(host, { body: () => ({ token: getAuthToken() }) });
  await lively.say("two");
  await lively.say("three");
  expect(bodies[0]).toEqual({ timezone: "Europe/Vienna", userId: "u-7" });
  const tokens = bodies.slice(1).map((body) => (body as { token: string }).token);
  expect(new Set(tokens).size).toBe(2);
});

test("prepareSendMessagesRequest: a body for each request", async () => {
  const host = await start();
  const chat = await openChat(host, {
    prepareSendMessagesRequest: async ({ messages, trigger }) => ({
      // Headers are not sent: there is one socket for all requests. A token belongs into the query or the body.
      headers: { Authorization: "Bearer secret" },
      body: { requestedAt: 1_700_000_000_000, count: messages.length, trigger },
    }),
  });
  await chat.say("one");
  expect(bodies).toEqual([{ requestedAt: 1_700_000_000_000, count: 1 }]);
});

test("getInitialMessages: none are fetched with null, or others are loaded", async () => {
  const host = await start();
  const greeting: UIMessage = { id: "hello", role: "assistant", parts: [{ type: "text", text: "How can I help?" }] };
  const bare = await openChat(host, { getInitialMessages: null, messages: [greeting] });
  expect(linesOf(bare.get().messages)).toEqual(["assistant: How can I help?"]);
  await bare.page.close();
  const own = await openChat(host, { getInitialMessages: async () => [greeting] });
  await own.when(({ messages }) => linesOf(messages)[0] === "assistant: How can I help?");
});

test("a page that comes back in the middle of an answer is given all of it", async () => {
  const gate = Promise.withResolvers<string>();
  const host = await start(() => gate.promise);
  const first = await openChat(host);
  void first.get().sendMessage({ text: "slowly" });
  await expect.poll(() => bodies.length).toBe(1);
  await first.page.close();
  const chat = handle<Chat>();
  function Page() {
    const agent = useTheAgent(host);
    chat.current = useAgentChat({ agent });
    return null;
  }
  await open(<Page />);
  gate.resolve("At last.");
  await chat.when(({ messages, status }) => status === "ready" && linesOf(messages)[1] === "assistant: At last.");
  expect(linesOf(chat.get().messages)).toEqual(["user: slowly", "assistant: At last."]);
});

test("resume: false: the page does not take up the stream, and has the answer at its end", async () => {
  const gate = Promise.withResolvers<string>();
  const host = await start(() => gate.promise);
  const first = await openChat(host);
  void first.get().sendMessage({ text: "slowly" });
  await expect.poll(() => bodies.length).toBe(1);
  const other = await openChat(host, { resume: false });
  gate.resolve("At last.");
  await other.when(({ messages }) => linesOf(messages)[1] === "assistant: At last.");
});

test("several pages: what one sends, the others see", async () => {
  const host = await start();
  const [a, b] = [await openChat(host), await openChat(host)];
  void a.get().sendMessage({ text: "hello" });
  for (const page of [a, b]) await page.when(({ messages }) => linesOf(messages)[1] === "assistant: About hello.");
  expect(b.get().messages).toEqual(await stored(host));
});
