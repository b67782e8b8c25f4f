// The three kinds of tools, and tools that the page defines.
import { type AITool, useAgentChat } from "@cloudflare/ai-chat/react";
import {
  convertToModelMessages,
  getToolName,
  isToolUIPart,
  type LanguageModel,
  stepCountIs,
  streamText,
  tool,
} from "ai";
import { AIChatAgent, type ChatTurnOptions, createToolsFromClientSchemas } from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { startHost } from "../../clients/harness.ts";
import { handle, linesOf, open, stored, useTheAgent } from "./page.tsx";

interface Env {
  readonly AI: LanguageModel;
}

type Chat = ReturnType<typeof useAgentChat>;

/** A call of a tool, then a word about it. */
const calls = (toolName: string, input: object): Script => {
  return ({ step }) => (step === 0 ? { toolCalls: [{ toolName, input }] } : "Done.");
};

test("a tool with execute runs on the server, and the model goes on with its result", async () => {
  const model = scriptedModel(calls("getWeather", { city: "Oslo" }));
  const fetchWeather = async (city: string) => ({ temp: city.length, condition: "rain" });

  class ChatAgent extends AIChatAgent<Env> {
    override async onChatMessage() {
      const result = streamText({
        model: this.env.AI,
        messages: await convertToModelMessages(this.messages),
        tools: {
          getWeather: tool({
            description: "Get weather for a city",
            inputSchema: z.object({ city: z.string() }),
            execute: async ({ city }) => {
              const data = await fetchWeather(city);
              return { temperature: data.temp, condition: data.condition };
            },
          }),
        },
        stopWhen: stepCountIs(5),
      });
      return result.toUIMessageStreamResponse();
    }
    ask(text: string) {
      return this.saveMessages(text);
    }
  }
  const host = await startHost({ agents: { ChatAgent }, env: { AI: model } });
  await host.getAgentByName(ChatAgent, "default").ask("weather?");
  const [, answer] = await stored(host);
  expect(answer?.parts.find(isToolUIPart)).toMatchObject({
    type: "tool-getWeather",
    state: "output-available",
    output: { temperature: 4, condition: "rain" },
  });
  expect(model.calls).toHaveLength(2);
});

test("a tool without execute is the page's: onToolCall answers it, and the conversation goes on", async () => {
  const model = scriptedModel(calls("getLocation", {}));

  class ChatAgent extends AIChatAgent<Env> {
    override async onChatMessage() {
      const result = streamText({
        model: this.env.AI,
        messages: await convertToModelMessages(this.messages),
        tools: {
          getLocation: tool({
            description: "Get the user's location from the browser",
            inputSchema: z.object({}),
          }),
        },
      });
      return result.toUIMessageStreamResponse();
    }
  }
  const host = await startHost({ agents: { ChatAgent }, env: { AI: model } });

  // What a browser knows and a test does not.
  const geolocation = {
    getCurrentPosition: (found: (position: { coords: { latitude: number; longitude: number } }) => void) =>
      found({ coords: { latitude: 48.2, longitude: 16.4 } }),
  };
  const chat = handle<Chat>();
  function Page() {
    const agent = useTheAgent(host);
    chat.current = useAgentChat({
      agent,
      onToolCall: async ({ toolCall, addToolOutput }) => {
        if (toolCall.toolName !== "getLocation") return;
        const position = await new Promise<{ coords: { latitude: number; longitude: number } }>((resolve) =>
          geolocation.getCurrentPosition(resolve),
        );
        addToolOutput({
          toolCallId: toolCall.toolCallId,
          output: { lat: position.coords.latitude, lng: position.coords.longitude },
        });
      },
    });
    return null;
  }
  await open(<Page />);
  await chat.when(({ status }) => status === "ready");
  void chat.get().sendMessage({ text: "where am I?" });
  await chat.when(({ messages }) => linesOf(messages).at(-1) === "assistant: Done.");
  const [, answer] = await stored(host);
  expect(answer?.parts.find(isToolUIPart)).toMatchObject({
    state: "output-available",
    output: { lat: 48.2, lng: 16.4 },
  });
});

test("tools that the page defines while it runs", async () => {
  const model = scriptedModel(calls("getPageTitle", {}));

  class ChatAgent extends AIChatAgent<Env> {
    override async onChatMessage(_onFinish: unknown, options: ChatTurnOptions) {
      const result = streamText({
        model: this.env.AI,
        messages: await convertToModelMessages(this.messages),
        tools: createToolsFromClientSchemas(options.clientTools),
      });
      return result.toUIMessageStreamResponse();
    }
  }
  const host = await startHost({ agents: { ChatAgent }, env: { AI: model } });

  document.title = "Shop";
  const tools: Record<string, AITool> = {
    getPageTitle: {
      description: "Get the current page title",
      parameters: { type: "object", properties: {} },
      execute: async () => ({ title: document.title }),
    },
  };
  const chat = handle<Chat>();
  function Page() {
    const agent = useTheAgent(host);
    chat.current = useAgentChat({
      agent,
      tools,
      onToolCall: async ({ toolCall, addToolOutput }) => {
        const known = tools[toolCall.toolName];
        if (known?.execute === undefined) return;
        const output = await known.execute(toolCall.input);
        addToolOutput({ toolCallId: toolCall.toolCallId, output });
      },
    });
    return null;
  }
  await open(<Page />);
  await chat.when(({ status }) => status === "ready");
  void chat.get().sendMessage({ text: "what page is this?" });
  await chat.when(({ messages }) => linesOf(messages).at(-1) === "assistant: Done.");
  expect(model.calls[0]?.tools).toMatchObject([{ name: "getPageTitle", description: "Get the current page title" }]);
  const [, answer] = await stored(host);
  expect(answer?.parts.find(isToolUIPart)).toMatchObject({ output: { title: "Shop" } });
});

test.each([
  ["Approve", "output-available", [{ amount: 250, recipient: "Ada" }]],
  ["Reject", "output-denied", []],
] as const)("a payment that needs approval, and a person who clicks %s", async (click, state, charged) => {
  const charges: object[] = [];
  const charge = (amount: number, recipient: string) => {
    charges.push({ amount, recipient });
    return { paid: amount };
  };
  class ChatAgent extends AIChatAgent<Env> {
    override async onChatMessage() {
      const result = streamText({
        model: this.env.AI,
        messages: await convertToModelMessages(this.messages),
        tools: {
          processPayment: tool({
            description: "Process a payment",
            inputSchema: z.object({ amount: z.number(), recipient: z.string() }),
            needsApproval: async ({ amount }) => amount > 100,
            execute: async ({ amount, recipient }) => charge(amount, recipient),
          }),
        },
        stopWhen: stepCountIs(5),
      });
      return result.toUIMessageStreamResponse();
    }
  }
  const script = calls("processPayment", { amount: 250, recipient: "Ada" });
  const host = await startHost({ agents: { ChatAgent }, env: { AI: scriptedModel(script) } });

  const chat = handle<Chat>();
  function Page() {
    const agent = useTheAgent(host);
    const { messages, addToolApprovalResponse } = (chat.current = useAgentChat({ agent }));
    return messages.map((message) =>
      message.parts.map((part) => {
        // A predicate that narrows, in the place of a filter that does not: the ids are there for sure then.
        if (!isToolUIPart(part) || part.state !== "approval-requested") return null;
        const answer = (approved: boolean) => () => void addToolApprovalResponse({ id: part.approval.id, approved });
        return (
          <div key={part.toolCallId}>
            <p>Approve {getToolName(part)}?</p>
            <button onClick={answer(true)}>Approve</button>
            <button onClick={answer(false)}>Reject</button>
          </div>
        );
      }),
    );
  }
  const page = await open(<Page />);
  await chat.when(({ status }) => status === "ready");
  void chat.get().sendMessage({ text: "pay Ada" });
  await page.shows("Approve processPayment?");
  expect(charges).toEqual([]);
  await page.click(click);
  await chat.when(({ messages }) => linesOf(messages).at(-1) === "assistant: Done.");
  const [, answer] = await stored(host);
  expect(answer?.parts.find(isToolUIPart)).toMatchObject({ state });
  expect(charges).toEqual(charged);
});

test("addToolOutput with output-error denies a call in words of the page", async () => {
  class ChatAgent extends AIChatAgent<Env> {
    override async onChatMessage() {
      const result = streamText({
        model: this.env.AI,
        messages: await convertToModelMessages(this.messages),
        tools: { readClipboard: tool({ inputSchema: z.object({}) }) },
      });
      return result.toUIMessageStreamResponse();
    }
  }
  const host = await startHost({ agents: { ChatAgent }, env: { AI: scriptedModel(calls("readClipboard", {})) } });
  const chat = handle<Chat>();
  function Page() {
    const agent = useTheAgent(host);
    chat.current = useAgentChat({ agent, autoContinueAfterToolResult: false });
    return null;
  }
  await open(<Page />);
  await chat.when(({ status }) => status === "ready");
  void chat.get().sendMessage({ text: "paste it" });
  const { messages, addToolOutput } = await chat.when(
    (now) => now.status === "ready" && (now.messages[1]?.parts.some(isToolUIPart) ?? false),
  );
  const call = messages[1]?.parts.find(isToolUIPart);
  addToolOutput({ toolCallId: call?.toolCallId ?? "", state: "output-error", errorText: "Not this clipboard." });
  await chat.when((now) =>
    (now.messages[1]?.parts ?? []).some((part) => isToolUIPart(part) && part.state === "output-error"),
  );
  const [, answer] = await stored(host);
  expect(answer?.parts.find(isToolUIPart)).toMatchObject({ state: "output-error", errorText: "Not this clipboard." });
});
