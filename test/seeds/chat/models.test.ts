// Providers, and what the AI SDK can do inside of onChatMessage.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import type { LanguageModelV4Middleware, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import {
  convertToModelMessages,
  generateObject,
  isToolUIPart,
  type LanguageModel,
  stepCountIs,
  streamText,
  tool,
  ToolLoopAgent,
  type UIMessage,
  wrapLanguageModel,
} from "ai";
import { AIChatAgent, type AgentHost } from "perdure";
import { fakeOpenAI, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { connected, startHost } from "../../clients/harness.ts";
import { until } from "../../support/until.ts";

/** A class that is asked by the test. */
class Asked<Env extends object> extends AIChatAgent<Env> {
  async ask(text: string): Promise<UIMessage | undefined> {
    await this.saveMessages(text);
    return this.messages.at(-1);
  }
}

async function ask<Env extends object>(ChatAgent: new (host: AgentHost) => Asked<Env>, env: Env): Promise<UIMessage> {
  const host = await startHost({ agents: { ChatAgent }, env });
  const answer = await host.getAgentByName(ChatAgent, "default").ask("go");
  if (answer === undefined) throw new Error("There is no answer.");
  return answer;
}

const textOf = ({ parts }: UIMessage) => parts.map((part) => (part.type === "text" ? part.text : "")).join("");
const outputOf = ({ parts }: UIMessage) => parts.find(isToolUIPart)?.output;

test("OpenAI, with a key from this.env", async () => {
  await using server = await fakeOpenAI(["Hello from far away."]);
  class ChatAgent extends Asked<{ OPENAI_API_KEY: string; OPENAI_URL: string }> {
    override async onChatMessage() {
      // The address is a server of this test.
      const openai = createOpenAI({ apiKey: this.env.OPENAI_API_KEY, baseURL: this.env.OPENAI_URL });
      const result = streamText({
        model: openai.chat("gpt-4o"),
        messages: await convertToModelMessages(this.messages),
      });
      return result.toUIMessageStreamResponse();
    }
  }
  const answer = await ask(ChatAgent, { OPENAI_API_KEY: "sk-test", OPENAI_URL: server.url });
  expect(textOf(answer)).toBe("Hello from far away.");
  expect(server.requests[0]).toMatchObject({ headers: { authorization: "Bearer sk-test" }, body: { model: "gpt-4o" } });
});

/** What Anthropic's server streams for a text. */
function anthropicEvents(text: string): string {
  const events: { type: string; [field: string]: unknown }[] = [
    {
      type: "message_start",
      message: {
        ...{ id: "msg_1", type: "message", role: "assistant", model: "claude", content: [], stop_reason: null },
        usage: { input_tokens: 3, output_tokens: 0 },
      },
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 4 } },
    { type: "message_stop" },
  ];
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

test("Anthropic, with a key from this.env", async () => {
  const keys: (string | null)[] = [];
  class ChatAgent extends Asked<{ ANTHROPIC_API_KEY: string }> {
    override async onChatMessage() {
      const anthropic = createAnthropic({
        apiKey: this.env.ANTHROPIC_API_KEY,
        // Nothing leaves this machine.
        fetch: async (_input, init) => {
          keys.push(new Headers(init?.headers).get("x-api-key"));
          return new Response(anthropicEvents("Good day."), { headers: { "content-type": "text/event-stream" } });
        },
      });
      const result = streamText({
        model: anthropic("claude-sonnet-4-20250514"),
        messages: await convertToModelMessages(this.messages),
      });
      return result.toUIMessageStreamResponse();
    }
  }
  expect(textOf(await ask(ChatAgent, { ANTHROPIC_API_KEY: "sk-ant" }))).toBe("Good day.");
  expect(keys).toEqual(["sk-ant"]);
});

interface Models {
  readonly cheap: LanguageModel;
  readonly expensive: LanguageModel;
}

test("prepareStep changes the model, the tools and what must be used from step to step", async () => {
  const cheap = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "search", input: {} }] } : "In short: fine.",
  );
  const expensive = scriptedModel([{ toolCalls: [{ toolName: "analyze", input: {} }] }]);
  const done = (what: string) => tool({ inputSchema: z.object({}), execute: async () => ({ what }) });

  class ChatAgent extends Asked<Models> {
    override async onChatMessage() {
      const result = streamText({
        model: this.env.cheap,
        messages: await convertToModelMessages(this.messages),
        tools: { search: done("searched"), analyze: done("analyzed"), summarize: done("summarized") },
        stopWhen: stepCountIs(10),
        prepareStep: async ({ stepNumber }) => {
          if (stepNumber === 0) return { activeTools: ["search"], toolChoice: "required" };
          if (stepNumber === 1) return { model: this.env.expensive, activeTools: ["analyze"] };
          return { activeTools: ["summarize"] };
        },
      });
      return result.toUIMessageStreamResponse();
    }
  }
  const answer = await ask(ChatAgent, { cheap, expensive });
  expect(textOf(answer)).toBe("In short: fine.");
  const toolsOf = (call: { tools: readonly { name: string }[] } | undefined) => call?.tools.map(({ name }) => name);
  expect([toolsOf(cheap.calls[0]), toolsOf(expensive.calls[0]), toolsOf(cheap.calls[1])]).toEqual([
    ["search"],
    ["analyze"],
    ["summarize"],
  ]);
  expect(cheap.calls[0]?.options.toolChoice).toEqual({ type: "required" });
});

/** Takes numbers that look private out of texts. A text that streams comes in pieces, so this one waits for its end. */
const redact = (text: string) => text.replace(/\b\d{3}-\d{2}-\d{4}\b/g, "[REDACTED]");
const guardrailMiddleware: LanguageModelV4Middleware = {
  specificationVersion: "v4",
  // In the text only `wrapGenerate` stands here, which `streamText` never calls; and what it is given is content in parts.
  wrapGenerate: async ({ doGenerate }) => {
    const { content, ...rest } = await doGenerate();
    return {
      ...rest,
      content: content.map((part) => (part.type === "text" ? { ...part, text: redact(part.text) } : part)),
    };
  },
  wrapStream: async ({ doStream }) => {
    const { stream, ...rest } = await doStream();
    const texts = new Map<string, string>();
    const clean = new TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart>({
      transform(part, out) {
        if (part.type === "text-delta") texts.set(part.id, (texts.get(part.id) ?? "") + part.delta);
        else {
          if (part.type === "text-end")
            out.enqueue({ type: "text-delta", id: part.id, delta: redact(texts.get(part.id) ?? "") });
          out.enqueue(part);
        }
      },
    });
    return { stream: stream.pipeThrough(clean), ...rest };
  },
};

test("a middleware around the model keeps things out of the answer", async () => {
  const baseModel = scriptedModel(["Their number is 123-45-6789, I think."]);
  class ChatAgent extends Asked<object> {
    override async onChatMessage() {
      const model = wrapLanguageModel({ model: baseModel, middleware: [guardrailMiddleware] });
      const result = streamText({ model, messages: await convertToModelMessages(this.messages) });
      return result.toUIMessageStreamResponse();
    }
  }
  expect(textOf(await ask(ChatAgent, {}))).toBe("Their number is [REDACTED], I think.");
});

test("generateObject() inside of a tool takes structured data out of a text", async () => {
  const contact = { name: "Ada", email: "ada@example.com" };
  const model = scriptedModel(({ options, step }) => {
    if (options.responseFormat?.type === "json") return JSON.stringify(contact);
    return step === 0 ? { toolCalls: [{ toolName: "extractContactInfo", input: { text: "Ada, …" } }] } : "Got it.";
  });
  class ChatAgent extends Asked<object> {
    override async onChatMessage() {
      const result = streamText({
        model,
        messages: await convertToModelMessages(this.messages),
        tools: {
          extractContactInfo: tool({
            description: "Extract structured contact information from the conversation",
            inputSchema: z.object({ text: z.string().describe("The text to extract contact info from") }),
            execute: async ({ text }) => {
              const { object } = await generateObject({
                model,
                schema: z.object({ name: z.string(), email: z.email(), phone: z.string().optional() }),
                prompt: `Extract contact information from: ${text}`,
              });
              return object;
            },
          }),
        },
        stopWhen: stepCountIs(5),
      });
      return result.toUIMessageStreamResponse();
    }
  }
  expect(outputOf(await ask(ChatAgent, {}))).toEqual(contact);
});

const orchestratorModel = () =>
  scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "deepResearch", input: { topic: "bees" } }] } : "They dance.",
  );
const webSearchTool = tool({ inputSchema: z.object({}), execute: async () => "Bees dance." });
const topic = z.object({ topic: z.string().describe("The topic to research") });

/** An agent of the AI SDK, with its own tools and instructions. */
const researcher = () =>
  new ToolLoopAgent({
    model: scriptedModel(({ step }) =>
      step === 0 ? { toolCalls: [{ toolName: "webSearch", input: {} }] } : "Bees dance to tell the way.",
    ),
    instructions: "You are a research assistant. Be thorough and cite sources.",
    tools: { webSearch: webSearchTool },
    stopWhen: stepCountIs(10),
  });

test("a tool hands its work to a ToolLoopAgent, and only the summary comes back", async () => {
  const researchAgent = researcher();
  const model = orchestratorModel();
  class ChatAgent extends Asked<object> {
    override async onChatMessage() {
      const result = streamText({
        model,
        messages: await convertToModelMessages(this.messages),
        tools: {
          deepResearch: tool({
            description: "Research a topic in depth",
            inputSchema: topic,
            execute: async (input) => {
              const { text } = await researchAgent.generate({ prompt: input.topic });
              return { summary: text };
            },
          }),
        },
        stopWhen: stepCountIs(5),
      });
      return result.toUIMessageStreamResponse();
    }
  }
  const answer = await ask(ChatAgent, {});
  expect([outputOf(answer), textOf(answer)]).toEqual([{ summary: "Bees dance to tell the way." }, "They dance."]);
});

test("a tool that yields shows how far it is; the last value is what the model reads", async () => {
  const researchAgent = researcher();
  const model = orchestratorModel();
  class ChatAgent extends Asked<object> {
    override async onChatMessage() {
      const result = streamText({
        model,
        messages: await convertToModelMessages(this.messages),
        tools: {
          deepResearch: tool({
            description: "Research a topic in depth",
            inputSchema: topic,
            async *execute(input) {
              yield { status: "searching", topic: input.topic, summary: undefined };
              const { text } = await researchAgent.generate({ prompt: input.topic });
              yield { status: "done", topic: input.topic, summary: text };
            },
          }),
        },
        stopWhen: stepCountIs(5),
      });
      return result.toUIMessageStreamResponse();
    }
  }
  const host = await startHost({ agents: { ChatAgent } });
  const { client, frames } = await connected(host, { agent: "ChatAgent", name: "default" });
  onTestFinished(() => client.close());
  const answer = await host.getAgentByName(ChatAgent, "default").ask("go");
  await until(() => frames.some(({ done }) => done === true));
  const outputs = frames.flatMap(({ body, done }) => {
    if (done !== false || typeof body !== "string") return [];
    const chunk = JSON.parse(body) as { type: string; output?: { status: string }; preliminary?: boolean };
    return chunk.type === "tool-output-available" ? [[chunk.output?.status, chunk.preliminary ?? false]] : [];
  });
  expect(outputs[0]).toEqual(["searching", true]);
  expect(outputs.at(-1)).toEqual(["done", false]);
  expect(answer && outputOf(answer)).toEqual({ status: "done", topic: "bees", summary: "Bees dance to tell the way." });
});
