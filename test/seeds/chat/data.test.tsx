// Data parts beside the text, and what becomes of messages that are large.
import { useAgentChat } from "@cloudflare/ai-chat/react";
import {
  convertToModelMessages,
  createUIMessageStream,
  createUIMessageStreamResponse,
  type DataUIPart,
  isToolUIPart,
  type LanguageModel,
  stepCountIs,
  streamText,
  tool,
  type UIMessage,
} from "ai";
import { AIChatAgent } from "perdure";
import { scriptedModel } from "perdure/testing";
import { useState } from "react";
import { expect, test } from "vitest";
import { z } from "zod";
import { startHost } from "../../clients/harness.ts";
import { handle, open, stored, useTheAgent } from "./page.tsx";

interface Env {
  readonly AI: LanguageModel;
}

/** The data of this app, the transient one among it. */
type Data = {
  sources: { query: string; status: string; results: string[] };
  log: { line: string };
  usage: { model: string; inputTokens: number; outputTokens: number };
  thinking: { model: string; startedAt: string };
};
type ChatMessage = UIMessage<unknown, Data>;
/** What `onData` is told. Written out: the published types of the hook do not hand it down to the callback. */
type DataPart = DataUIPart<Data>;

class ChatAgent extends AIChatAgent<Env> {
  override async onChatMessage() {
    const stream = createUIMessageStream<ChatMessage>({
      execute: async ({ writer }) => {
        writer.write({
          transient: true,
          type: "data-thinking",
          data: { model: "scripted", startedAt: new Date(0).toISOString() },
        });
        const result = streamText({
          model: this.env.AI,
          messages: await convertToModelMessages(this.messages),
        });
        writer.merge(result.toUIMessageStream());
        // The same type and id: in place of the one before.
        const id = "src-1";
        writer.write({ type: "data-sources", id, data: { query: "agents", status: "searching", results: [] } });
        const results = ["Handbook", "Guide"];
        writer.write({ type: "data-sources", id, data: { query: "agents", status: "found", results } });
        // Without an id: one behind the other.
        for (const line of ["looked", "found"]) writer.write({ type: "data-log", data: { line } });
        const usage = await result.totalUsage;
        writer.write({
          type: "data-usage",
          data: { model: "scripted", inputTokens: usage.inputTokens ?? 0, outputTokens: usage.outputTokens ?? 0 },
        });
      },
    });
    return createUIMessageStreamResponse({ stream });
  }
}

test("data parts: updated in place, appended, or transient; typed in the page, and told to onData", async () => {
  const host = await startHost({ agents: { ChatAgent }, env: { AI: scriptedModel(["Here they are."]) } });
  const chat = handle<{ send: (text: string) => void; results: string[]; status: string; told: string[] }>();
  const told: string[] = [];

  function Page() {
    const agent = useTheAgent(host);
    const [thinking, setThinking] = useState(false);
    const { messages, sendMessage, status } = useAgentChat<unknown, ChatMessage>({
      agent,
      onData(part: DataPart) {
        told.push(part.type);
        if (part.type === "data-thinking") setThinking(true);
      },
    });
    const results: string[] = [];
    for (const message of messages) {
      for (const part of message.parts) {
        // Known to be a list of texts, without a cast.
        if (part.type === "data-sources") results.push(...part.data.results);
      }
    }
    chat.current = { send: (text) => void sendMessage({ text }), results, status, told };
    return thinking ? "It thought." : "Nothing yet.";
  }

  const page = await open(<Page />);
  await chat.when(({ status }) => status === "ready");
  chat.get().send("find agents");
  await page.shows("It thought.");
  await chat.when(({ results, status }) => status === "ready" && results.length === 2);
  expect(chat.get().results).toEqual(["Handbook", "Guide"]);
  expect(new Set(told)).toEqual(new Set(["data-thinking", "data-sources", "data-log", "data-usage"]));
  const [, answer] = await stored(host);
  const data = (answer?.parts ?? []).filter(({ type }) => type.startsWith("data-"));
  expect(data).toMatchObject([
    { type: "data-sources", id: "src-1", data: { status: "found" } },
    { type: "data-log", data: { line: "looked" } },
    { type: "data-log", data: { line: "found" } },
    { type: "data-usage", data: { model: "scripted" } },
  ]);
});

test("a tool's output that is too large for a row is cut where it is stored, and the message says so", async () => {
  class Reader extends AIChatAgent<Env> {
    override async onChatMessage() {
      const result = streamText({
        model: this.env.AI,
        messages: await convertToModelMessages(this.messages),
        tools: {
          read: tool({ inputSchema: z.object({}), execute: async () => ({ text: "long ".repeat(500_000) }) }),
        },
        stopWhen: stepCountIs(5),
      });
      return result.toUIMessageStreamResponse();
    }
    ask(text: string) {
      return this.saveMessages(text);
    }
  }
  const script = [{ toolCalls: [{ toolName: "read", toolCallId: "c1", input: {} }] }, "That was long."];
  const host = await startHost({ agents: { Reader }, env: { AI: scriptedModel(script) } });
  await host.getAgentByName(Reader, "default").ask("read it");
  const [, answer] = await stored(host, "reader");
  // Beside the list of the text there is one of texts that were cut (`compactedTextParts`), where that happened.
  expect(answer?.metadata).toEqual({ compactedToolOutputs: ["c1"] });
  const output = answer?.parts.find(isToolUIPart)?.output;
  expect(JSON.stringify(output).length).toBeLessThan(2_000);
  expect(JSON.stringify(output)).toContain("Run the tool again");
});
