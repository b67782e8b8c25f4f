import { hasToolCall, type ContentPart, type ModelMessage, type ToolSet } from "ai";
import { expect, test } from "vitest";
import type { Part } from "../../message/types.ts";
import { NO_USAGE, type StepMeta, stepRecord } from "./record.ts";

const meta: StepMeta = {
  stepNumber: 1,
  callId: "call_1",
  provider: "mock",
  modelId: "m-1",
  finishReason: "tool-calls",
  usage: { ...NO_USAGE, inputTokens: 10, outputTokens: 5, totalTokens: 15 },
};
const messages: ModelMessage[] = [{ role: "assistant", content: "Hello" }];
const parts: Part[] = [
  { type: "reasoning", text: "Hm.", state: "done", providerMetadata: { mock: { signature: "s" } } },
  { type: "text", text: "One. ", state: "done" },
  { type: "text", text: "Two.", state: "done" },
  { type: "tool-look", toolCallId: "c1", state: "output-available", input: { a: 1 }, output: { b: 2 } },
  { type: "dynamic-tool", toolName: "far", toolCallId: "c2", state: "output-error", input: {}, errorText: "No." },
  { type: "tool-look", toolCallId: "c3", state: "input-available", input: { a: 3 } },
];

test("what is stored of a step tells what was said, asked and answered", () => {
  const record = stepRecord(meta, parts, messages);
  expect(record).toMatchObject({
    callId: "call_1",
    stepNumber: 1,
    model: { provider: "mock", modelId: "m-1" },
    text: "One. Two.",
    reasoning: [{ type: "reasoning", text: "Hm.", providerOptions: { mock: { signature: "s" } } }],
    reasoningText: "Hm.",
    finishReason: "tool-calls",
    usage: meta.usage,
    response: { messages },
  });
  expect(record.content.map(({ type }) => type)).toEqual([
    "reasoning",
    "text",
    "text",
    "tool-call",
    "tool-call",
    "tool-call",
    "tool-result",
    "tool-error",
  ]);
  expect(record.toolCalls).toMatchObject([
    { toolCallId: "c1", toolName: "look", input: { a: 1 } },
    { toolCallId: "c2", toolName: "far", input: {}, dynamic: true },
    { toolCallId: "c3", toolName: "look", input: { a: 3 } },
  ]);
  expect(record.staticToolCalls.map(({ toolCallId }) => toolCallId)).toEqual(["c1", "c3"]);
  expect(record.dynamicToolCalls.map(({ toolCallId }) => toolCallId)).toEqual(["c2"]);
  expect(record.toolResults).toMatchObject([{ toolCallId: "c1", toolName: "look", input: { a: 1 }, output: { b: 2 } }]);
  expect(record.staticToolResults).toHaveLength(1);
  expect(record.dynamicToolResults).toEqual([]);
  expect(record.content.at(-1)).toMatchObject({ type: "tool-error", toolCallId: "c2", error: "No.", dynamic: true });
});

test("what is not known is empty, but there", () => {
  const record = stepRecord(meta, [], []);
  expect(record).toMatchObject({
    content: [],
    text: "",
    reasoning: [],
    reasoningText: undefined,
    files: [],
    sources: [],
    toolCalls: [],
    toolResults: [],
    warnings: undefined,
    request: {},
    runtimeContext: {},
    response: { id: "call_1", modelId: "m-1", timestamp: new Date(0), messages: [] },
    performance: { responseTimeMs: 0, stepTimeMs: 0, toolExecutionMs: {} },
    providerMetadata: undefined,
  });
});

test("what is known goes before what is stored; results of tools come from what is stored", () => {
  const content: ContentPart<ToolSet>[] = [
    { type: "text", text: "As it was streamed.", providerMetadata: { mock: { id: "t" } } },
    { type: "source", sourceType: "url", id: "s", url: "https://a.example" },
    { type: "tool-call", toolCallId: "c1", toolName: "look", input: { a: 1 } },
    { type: "tool-call", toolCallId: "p", toolName: "search", input: {}, providerExecuted: true },
    { type: "tool-result", toolCallId: "p", toolName: "search", input: {}, output: 7, providerExecuted: true },
  ] as ContentPart<ToolSet>[];
  const own: Part[] = [
    { type: "text", text: "As it was stored.", state: "done" },
    { type: "tool-look", toolCallId: "c1", state: "output-available", input: { a: 1 }, output: 1 },
    {
      type: "tool-search",
      toolCallId: "p",
      state: "output-available",
      input: {},
      output: 7,
      providerExecuted: true,
    },
  ];
  const record = stepRecord({ ...meta, content }, own, []);
  expect(record.text).toBe("As it was streamed.");
  expect(record.sources).toHaveLength(1);
  expect(record.content.slice(0, content.length)).toEqual(content);
  expect(record.toolResults.map(({ toolCallId }) => toolCallId)).toEqual(["p", "c1"]);
});

test("what a provider has done itself is in the record of what is stored too", () => {
  const search = { type: "tool-search", toolCallId: "p", providerExecuted: true, input: { q: "x" } } as const;
  const record = stepRecord(meta, [{ ...search, state: "output-available", output: 7 }], []);
  expect(record.content).toEqual([
    { type: "tool-call", toolCallId: "p", toolName: "search", input: { q: "x" }, providerExecuted: true },
    { type: "tool-result", toolCallId: "p", toolName: "search", input: { q: "x" }, output: 7, providerExecuted: true },
  ]);
});

test("sources are in the record", () => {
  const record = stepRecord(
    meta,
    [
      { type: "source-url", sourceId: "s1", url: "https://a.example", title: "A" },
      { type: "source-document", sourceId: "s2", mediaType: "application/pdf", title: "B" },
    ],
    [],
  );
  expect(record.sources).toEqual([
    { type: "source", sourceType: "url", id: "s1", url: "https://a.example", title: "A" },
    { type: "source", sourceType: "document", id: "s2", mediaType: "application/pdf", title: "B" },
  ]);
});

test("a call that is still being streamed is none, a preliminary output is no result, a denied call has none", () => {
  const record = stepRecord(
    meta,
    [
      { type: "tool-look", toolCallId: "c1", state: "input-streaming", input: undefined },
      { type: "tool-look", toolCallId: "c2", state: "output-available", input: {}, output: 1, preliminary: true },
      {
        type: "tool-look",
        toolCallId: "c3",
        state: "output-denied",
        input: {},
        approval: { id: "a", approved: false },
      },
    ],
    [],
  );
  expect(record.toolCalls.map(({ toolCallId }) => toolCallId)).toEqual(["c2", "c3"]);
  expect(record.toolResults).toEqual([]);
});

test("what the model and the app said beside it is passed on", () => {
  const context = { user: "u" };
  const headers = { "x-id": "1" };
  const timestamp = new Date(5);
  const record = stepRecord(
    {
      ...meta,
      rawFinishReason: "tool_use",
      performance: { responseTimeMs: 12, timeToFirstOutputMs: 3 },
      warnings: [{ type: "other", message: "Careful." }],
      request: { body: "…" },
      response: { id: "r", modelId: "m-1-turbo", timestamp, headers },
      providerMetadata: { mock: { a: 1 } },
      context,
    },
    [],
    messages,
  );
  expect(record).toMatchObject({
    rawFinishReason: "tool_use",
    performance: { responseTimeMs: 12, timeToFirstOutputMs: 3, toolExecutionMs: {} },
    warnings: [{ type: "other", message: "Careful." }],
    request: { body: "…" },
    response: { id: "r", modelId: "m-1-turbo", timestamp, headers, messages },
    providerMetadata: { mock: { a: 1 } },
  });
  expect(record.runtimeContext).toBe(context);
  expect(record.response.messages).not.toBe(messages);
});

test("the AI SDK's stop conditions read it", async () => {
  const steps = [stepRecord(meta, parts, [])];
  expect(await hasToolCall("look")({ steps })).toBe(true);
  expect(await hasToolCall("other")({ steps })).toBe(false);
});
