import { DefaultChatTransport, readUIMessageStream, type UIMessage, type UIMessageChunk } from "ai";
import { AIChatAgent, type ChatTurnOptions } from "perdure";
import { memoryStorage, serve } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { connectTo, textIn, user } from "./client.ts";
import { readEvents } from "./events.ts";
import { openChat, type TestChat } from "./harness.ts";

const sdk = (chat: TestChat) => new DefaultChatTransport<UIMessage>({ api: `${chat.host.url}/agents/talk/one/chat` });
const request = { chatId: "page", messageId: undefined, abortSignal: undefined } as const;

async function build(stream: ReadableStream<UIMessageChunk>, message?: UIMessage): Promise<UIMessage | undefined> {
  let last: UIMessage | undefined;
  for await (const state of readUIMessageStream({ stream, ...(message && { message }) })) last = state;
  return last;
}

test("the AI SDK's own transport: send, and go on after a reload", async () => {
  const chat = await openChat();
  const transport = sdk(chat);
  expect(await transport.reconnectToStream({ chatId: "page" })).toBeNull();
  const stream = await transport.sendMessages({ ...request, trigger: "submit-message", messages: [user("u1")] });
  const stage = await chat.stage();
  stage.say("Hello");
  const again = await transport.reconnectToStream({ chatId: "page" });
  if (again === null) throw new Error("There is no stream to go on with.");
  stage.say(" you").end();
  const [first, second] = await Promise.all([build(stream), build(again)]);
  expect(textIn(first)).toBe("Hello you");
  const stored = await chat.stored();
  expect(stored).toMatchObject([{ id: "u1" }, { id: first?.id }]);
  expect(second).toEqual(first);
  expect(await transport.reconnectToStream({ chatId: "page" })).toBeNull();
  // The page asks anew.
  const anew = await transport.sendMessages({
    ...request,
    trigger: "regenerate-message",
    messageId: first?.id,
    messages: [user("u1")],
  });
  (await chat.stage()).say("Better").end();
  await build(anew);
  expect((await chat.stored()).map(textIn)).toEqual(["u1", "Better"]);
});

test("the AI SDK's own transport: what the page answered to a tool call is in the message that it sends", async () => {
  const chat = await openChat();
  const transport = sdk(chat);
  const stream = await transport.sendMessages({ ...request, trigger: "submit-message", messages: [user("u1")] });
  (await chat.stage()).call("c1", "where").ask("c2", "pay").end("tool-calls");
  const asked = await build(stream);
  if (asked === undefined) throw new Error("There is no answer.");
  const answered = {
    ...asked,
    parts: asked.parts.map((part) => {
      if (!("toolCallId" in part)) return part;
      return part.toolCallId === "c1"
        ? { ...part, state: "output-available", output: { city: "Rome" } }
        : { ...part, state: "approval-responded", approval: { id: "ask-c2", approved: true } };
    }),
  } as UIMessage;
  const more = await transport.sendMessages({
    ...request,
    trigger: "submit-message",
    messages: [user("u1"), answered],
  });
  const stage = await chat.stage();
  expect(stage.options.continuation).toBe(true);
  expect(stage.messages.at(-1)?.parts.filter((part) => "toolCallId" in part)).toMatchObject([
    { state: "output-available", output: { city: "Rome" } },
    { state: "approval-responded", approval: { approved: true } },
  ]);
  stage.say("In Rome").end();
  const whole = await build(more, answered);
  expect(textIn(whole)).toBe("In Rome");
  await chat.stable();
  expect(chat.calls).toBe(2);
  const stored = await chat.stored();
  expect(stored.map(({ id }) => id)).toEqual(["u1", asked.id]);
  expect(textIn(stored[1])).toBe("In Rome");
});

class Chat extends AIChatAgent {
  static override readonly subAgents = ["Chat"];
  override onChatMessage(_onFinish: unknown, options: ChatTurnOptions) {
    return new Response(`${this.name} hears ${options.requestId}`);
  }
  override onRequest() {
    return new Response("mine");
  }
}

test("a class called Chat, an agent called chat, and a chat below another agent", async () => {
  const host = await serve({ agents: { Chat }, storage: memoryStorage(), port: 0, signals: false, graceMs: 0 });
  onTestFinished(() => host.stop());
  for (const path of ["/agents/chat/chat", "/agents/chat/tools", "/agents/chat/p/sub/chat/chat"]) {
    const url = host.url + path;
    const name = path.split("/").at(-1);
    expect(await (await fetch(url)).text()).toBe("mine");
    expect(await (await fetch(url, { method: "POST", body: "{}" })).text()).toBe("mine");
    const body = JSON.stringify({ message: user("u1"), requestId: "tools" });
    const reader = readEvents(
      await fetch(`${url}/chat`, { method: "POST", body, headers: { accept: "text/event-stream" } }),
    );
    expect(await reader.outcome()).toMatchObject({ requestId: "tools", outcome: "completed" });
    expect(reader.text).toBe(`${name} hears tools`);
    const stored = (await (await fetch(`${url}/get-messages`)).json()) as UIMessage[];
    expect(stored.map(textIn)).toEqual(["u1", `${name} hears tools`]);
    const client = await connectTo(url);
    expect(client.greeting?.messages).toEqual(stored);
    client.request("r2", [...stored, user("u2")]);
    expect(await client.done("r2")).toMatchObject({ outcome: "completed" });
    await client.said("r2", `${name} hears r2`);
  }
  // The parent of a chat has a conversation of its own.
  expect(await (await fetch(`${host.url}/agents/chat/p/get-messages`)).json()).toEqual([]);
});

test("whoever waits for a turn hears of it also after the agent has left memory", async () => {
  const chat = await openChat({ host: { idleMs: 30 } });
  const url = `${chat.host.url}/agents/talk/one`;
  await fetch(`${url}/chat`, { method: "POST", body: JSON.stringify({ message: user("u1"), requestId: "r1" }) });
  (await chat.stage()).call("c1").call("c2").end("tool-calls");
  await chat.stable();
  const answer = (id: string) =>
    fetch(`${url}/chat/tools/${id}`, { method: "POST", body: JSON.stringify({ output: 1 }) });
  await answer("c1");
  const [held] = await chat.rows<{ id: string }>("SELECT id FROM perdure_turn WHERE status = 'held'");
  const reader = readEvents(await fetch(`${url}/chat/${held?.id}/stream`));
  await new Promise((resolve) => setTimeout(resolve, 300));
  await answer("c2");
  (await chat.stage()).say("goes on").end();
  expect(await reader.outcome()).toMatchObject({ requestId: held?.id, outcome: "completed" });
  expect(reader.text).toBe("goes on");
});
