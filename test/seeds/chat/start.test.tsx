// Quick start, and the server's side of a chat: what the documentation shows there, against this package.
import { useAgentChat } from "@cloudflare/ai-chat/react";
import { MessageType } from "@cloudflare/ai-chat/types";
import { convertToModelMessages, type LanguageModel, pruneMessages, streamText } from "ai";
import { AIChatAgent, type ChatTurnOptions, type Connection, type ConnectionContext } from "perdure";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { connected, startHost } from "../../clients/harness.ts";
import { until } from "../../support/until.ts";
import { handle, linesOf, open, stored, useTheAgent } from "./page.tsx";

// Instead of a binding of the platform and a provider for it, `env` holds a model that plays a script.
interface Env {
  readonly AI: LanguageModel;
}

type Chat = ReturnType<typeof useAgentChat>;

/** The quick start's agent. */
class ChatAgent extends AIChatAgent<Env> {
  override async onChatMessage() {
    const result = streamText({
      model: this.env.AI,
      messages: await convertToModelMessages(this.messages),
    });
    return result.toUIMessageStreamResponse();
  }
}

// The configuration of the platform (bindings, classes with SQLite) is what serve() is given.
const quickStart = (AI: LanguageModel) => startHost({ agents: { ChatAgent }, env: { AI } satisfies Env });

test("quick start: a page with a form, a list of messages and a button that waits", async () => {
  const host = await quickStart(scriptedModel(({ userText }) => `You said ${userText}.`));

  function ChatPage() {
    const agent = useTheAgent(host);
    const { messages, sendMessage, status } = useAgentChat({ agent });
    return (
      <div>
        {messages.map((message) => (
          <p key={message.id}>
            <strong>{message.role}:</strong>
            {message.parts.map((part, i) => (part.type === "text" ? <span key={i}>{part.text}</span> : null))}
          </p>
        ))}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const input = event.currentTarget.elements.namedItem("input") as HTMLInputElement;
            void sendMessage({ text: input.value });
            input.value = "";
          }}
        >
          <input name="input" placeholder="Say something" />
          <button type="submit" disabled={status === "streaming"}>
            Send
          </button>
        </form>
      </div>
    );
  }

  const page = await open(<ChatPage />);
  const input = await until(() => page.root.querySelector("input") ?? undefined);
  input.value = "hello";
  await page.click("Send");
  await page.shows("user:hello");
  await page.shows("assistant:You said hello.");
  expect(input.value).toBe("");
  await page.close();
  // A page that is opened later has it all.
  expect(linesOf(await stored(host))).toEqual(["user: hello", "assistant: You said hello."]);
});

test("onChatMessage: a streamed answer with a system prompt", async () => {
  const model = scriptedModel(["Hi."]);
  class Helpful extends AIChatAgent<Env> {
    override async onChatMessage() {
      const result = streamText({
        model: this.env.AI,
        // `system` in the text; the AI SDK has renamed it since, and still takes it.
        instructions: "You are a helpful assistant.",
        messages: await convertToModelMessages(this.messages),
      });
      return result.toUIMessageStreamResponse();
    }
    ask(text: string) {
      return this.saveMessages(text);
    }
  }
  const host = await startHost({ agents: { Helpful }, env: { AI: model } });
  await host.getAgentByName(Helpful, "default").ask("hello");
  expect(model.calls[0]?.prompt[0]).toMatchObject({ role: "system", content: "You are a helpful assistant." });
});

test("onChatMessage: a plain text answer", async () => {
  class Plain extends AIChatAgent {
    override async onChatMessage() {
      return new Response("Hello! I am a simple agent.", { headers: { "Content-Type": "text/plain" } });
    }
    async ask(text: string) {
      await this.saveMessages([{ id: "u1", role: "user", parts: [{ type: "text", text }] }]);
      return this.messages;
    }
  }
  const host = await startHost({ agents: { Plain } });
  const messages = await host.getAgentByName(Plain, "default").ask("hello");
  expect(linesOf(messages)).toEqual(["user: hello", "assistant: Hello! I am a simple agent."]);
});

test("this.messages, options.body and options.abortSignal in onChatMessage", async () => {
  const seen: unknown[] = [];
  class Curious extends AIChatAgent {
    // Parameters of an override have no types of their own in TypeScript, so they are written out.
    override async onChatMessage(_onFinish?: unknown, options?: ChatTurnOptions) {
      const { timezone, userId } = options?.body ?? {};
      seen.push(linesOf(this.messages), timezone, userId, options?.abortSignal.aborted);
      return new Response("Noted.");
    }
  }
  const host = await startHost({ agents: { Curious } });
  const chat = handle<Chat>();
  function Page() {
    const agent = useTheAgent(host, "Curious");
    chat.current = useAgentChat({ agent, body: { timezone: "Europe/Vienna", userId: "u-7" } });
    return null;
  }
  await open(<Page />);
  await chat.when(({ status }) => status === "ready");
  void chat.get().sendMessage({ text: "hello" });
  await chat.when(({ messages, status }) => status === "ready" && messages.length === 2);
  expect(seen).toEqual([["user: hello"], "Europe/Vienna", "u-7", false]);
});

test("maxPersistedMessages bounds what is stored; pruneMessages() what the model is sent", async () => {
  const model = scriptedModel(({ turn }) => `Answer ${turn}.`);
  class Frugal extends AIChatAgent<Env> {
    override maxPersistedMessages = 4;

    override async onChatMessage() {
      const result = streamText({
        model: this.env.AI,
        messages: pruneMessages({
          messages: await convertToModelMessages(this.messages),
          reasoning: "before-last-message",
          toolCalls: "before-last-2-messages",
        }),
      });
      return result.toUIMessageStreamResponse();
    }
    async ask(text: string) {
      await this.saveMessages(text);
      return linesOf(this.messages);
    }
  }
  const host = await startHost({ agents: { Frugal }, env: { AI: model } });
  const agent = host.getAgentByName(Frugal, "default");
  for (const text of ["one", "two"]) await agent.ask(text);
  expect(await agent.ask("three")).toHaveLength(4);
  expect((await agent.ask("four"))[2]).toBe("user: four");
});

test("persistMessages() stores without an answer, saveMessages() asks for one", async () => {
  class Programmed extends AIChatAgent<Env> {
    override async onChatMessage() {
      const messages = await convertToModelMessages(this.messages);
      return streamText({ model: this.env.AI, messages }).toUIMessageStreamResponse();
    }
    async remember(text: string) {
      await this.persistMessages([...this.messages, { id: text, role: "user", parts: [{ type: "text", text }] }]);
    }
    async ask(text: string) {
      const { status } = await this.saveMessages([
        ...this.messages,
        { id: text, role: "user", parts: [{ type: "text", text }] },
      ]);
      return { status, lines: linesOf(this.messages) };
    }
  }
  const host = await startHost({ agents: { Programmed }, env: { AI: scriptedModel(["Yes."]) } });
  const agent = host.getAgentByName(Programmed, "default");
  await agent.remember("The key is under the mat.");
  expect(await agent.ask("Do you know where it is?")).toEqual({
    status: "completed",
    lines: ["user: The key is under the mat.", "user: Do you know where it is?", "assistant: Yes."],
  });
});

test("onConnect() and onClose() may be overridden and call super", async () => {
  const log: string[] = [];
  class Watchful extends AIChatAgent {
    override async onConnect(connection: Connection, ctx: ConnectionContext) {
      log.push(`connected: ${new URL(ctx.request.url).searchParams.get("_pk") === connection.id}`);
      // Not required here: what the chat needs does not depend on the hook. It does no harm.
      await super.onConnect(connection, ctx);
    }
    override async onClose(connection: Connection, code: number, reason: string, wasClean: boolean) {
      log.push(`disconnected: ${connection.id !== ""}`);
      await super.onClose(connection, code, reason, wasClean);
    }
  }
  const host = await startHost({ agents: { Watchful } });
  const { client } = await connected(host, { agent: "Watchful", name: "default" });
  client.close();
  await until(() => log.length === 2);
  expect(log).toEqual(["connected: true", "disconnected: true"]);
});

test("stop in the page aborts the model call that was given options.abortSignal", async () => {
  const model = scriptedModel([{ text: "This goes on and", hang: true }]);
  class Stoppable extends AIChatAgent<Env> {
    // The options are always given.
    override async onChatMessage(_onFinish: unknown, options: ChatTurnOptions) {
      const result = streamText({
        model: this.env.AI,
        messages: await convertToModelMessages(this.messages),
        abortSignal: options.abortSignal,
      });
      return result.toUIMessageStreamResponse();
    }
  }
  const host = await startHost({ agents: { Stoppable }, env: { AI: model } });
  const chat = handle<Chat>();
  function Page() {
    const agent = useTheAgent(host, "Stoppable");
    chat.current = useAgentChat({ agent });
    return <button onClick={() => void chat.get().stop()}>Stop</button>;
  }
  const page = await open(<Page />);
  await chat.when(({ status }) => status === "ready");
  void chat.get().sendMessage({ text: "talk" });
  await chat.when(({ messages }) => linesOf(messages)[1] === "assistant: This goes on and");
  await page.click("Stop");
  await until(() => model.calls[0]?.status === "aborted");
  await chat.when(({ status }) => status === "ready");
  expect(linesOf(await stored(host, "stoppable"))).toEqual(["user: talk", "assistant: This goes on and"]);
});

test("frames of the protocol have the names that the published package exports", async () => {
  const host = await quickStart(scriptedModel(["Hello."]));
  const { client, frames } = await connected(host, { agent: "ChatAgent", name: "default" });
  client.send(JSON.stringify({ type: MessageType.CF_AGENT_STREAM_RESUME_REQUEST }));
  const message = { id: "u1", role: "user", parts: [{ type: "text", text: "hi" }] };
  const init = { method: "POST", body: JSON.stringify({ messages: [message] }) };
  client.send(JSON.stringify({ type: MessageType.CF_AGENT_USE_CHAT_REQUEST, id: "r1", init }));
  await until(() => frames.some(({ id, done }) => id === "r1" && done === true));
  client.send(JSON.stringify({ type: MessageType.CF_AGENT_CHAT_CLEAR }));
  await client.call("nothing").catch(() => undefined);
  const ours = new Set<string>(Object.values(MessageType));
  const told = frames.filter(({ type }) => !type.startsWith("cf_agent_identity") && type !== "rpc");
  expect(told.filter(({ type }) => !ours.has(type)).map(({ type }) => type)).toEqual(["cf_agent_mcp_servers"]);
  expect(told.map(({ type }) => type)).toContain(MessageType.CF_AGENT_USE_CHAT_RESPONSE);
  expect(await stored(host)).toEqual([]);
});
