import { jsonSchema, type ModelMessage, tool } from "ai";
import { expect, test } from "vitest";
import { toModelMessages } from "./model-messages.ts";
import { contextReport, type MessageSource, type ReportedRequest } from "./context-report.ts";
import type { ContextReport } from "../wire/session-types.ts";
import { unitsOfInstructions, unitsOfMessages, unitsOfTools } from "./units.ts";

const tools = {
  look: tool({ description: "Looks at a place.", inputSchema: jsonSchema({ type: "object" }) }),
  find: tool({ inputSchema: jsonSchema({ type: "object", properties: { what: { type: "string" } } }) }),
};
const user = (content: string): ModelMessage => ({ role: "user", content });
const base = { model: "openai/gpt-5", limits: { window: 100_000 }, tools: {}, messages: [] } satisfies ReportedRequest;
const usage = (input: number) => ({ input, output: 10, reasoning: 0, cacheRead: 0, cacheWrite: 0 });
const sumOf = (items: ContextReport["items"]) => items.reduce((sum, { tokens }) => sum + tokens, 0);

const call: ModelMessage = {
  role: "assistant",
  content: [
    { type: "text", text: "I will look." },
    { type: "tool-call", toolCallId: "c", toolName: "look", input: { at: "home" } },
  ],
};
const results: ModelMessage = {
  role: "tool",
  content: [
    { type: "tool-result", toolCallId: "c", toolName: "look", output: { type: "text", value: "x".repeat(4_000) } },
    { type: "tool-result", toolCallId: "d", toolName: "find", output: { type: "json", value: { at: [1, 2, 3] } } },
  ],
};
const withFile: ModelMessage = {
  role: "user",
  content: [
    { type: "text", text: "See   this\npicture" },
    { type: "file", mediaType: "image/png", filename: "a.png", data: "AAAA" },
  ],
};

test("nothing fills nothing", () => {
  expect(contextReport(base)).toEqual({
    ...{ model: "openai/gpt-5", limit: 100_000, usable: 84_000, used: 0, estimated: true, items: [] },
    byKind: { system: 0, tools: 0, block: 0, summary: 0, carried: 0, pinned: 0, message: 0, "tool-output": 0, file: 0 },
    leftOut: [],
    leftOutByKind: { summarised: 0, cleared: 0, superseded: 0, bounded: 0 },
  });
  expect(contextReport({ ...base, usage: usage(50) }).used).toBe(0);
});

test("everything that is sent is in it, in order, with its kind, its label and where it is from", () => {
  const sources = new Map<ModelMessage, MessageSource>();
  const summary = user("What was said before: the sky is blue.");
  const pinned = user("Never delete anything.");
  sources.set(summary, { kind: "summary" });
  sources.set(pinned, { id: "m1", kind: "pinned" });
  sources.set(call, { id: "m2" });
  sources.set(results, { id: "m2" });
  sources.set(withFile, { id: "m3" });
  const messages = [summary, pinned, call, results, withFile, user("")];
  const instructions = "You are brief.\n<memory>The user is called Ada.</memory>";
  const blocks = [{ label: "memory", text: "The user is called Ada." }];
  const report = contextReport({
    ...{ ...base, instructions, blocks, tools, messages },
    sourceOf: (message) => sources.get(message),
  });
  expect(report.items.map(({ kind, id, label }) => [kind, id, label])).toEqual([
    ["system", undefined, "instructions"],
    ["block", undefined, "memory"],
    ["tools", undefined, "look"],
    ["tools", undefined, "find"],
    ["summary", undefined, "user: What was said before: the sky is blue."],
    ["pinned", "m1", "user: Never delete anything."],
    ["message", "m2", "assistant: I will look."],
    ["tool-output", "m2", "look"],
    ["tool-output", "m2", "find"],
    ["message", "m3", "user: See this picture"],
    ["file", "m3", "a.png"],
    ["message", undefined, "user"],
  ]);
  expect(report.items.every(({ tokens }) => tokens > 0)).toBe(true);
  // Equal to what is sent.
  const units = unitsOfInstructions(instructions) + unitsOfTools(tools) + unitsOfMessages(messages);
  expect(report.used).toBe(Math.ceil(units));
  expect(sumOf(report.items)).toBe(report.used);
  for (const [kind, tokens] of Object.entries(report.byKind)) {
    expect(tokens).toBe(sumOf(report.items.filter((item) => item.kind === kind)));
  }
  expect(report.byKind["tool-output"]).toBeGreaterThan(1_000);
  expect(report.byKind.file).toBeGreaterThanOrEqual(1_599);
});

test("what the provider counted is divided without a rest", () => {
  for (const input of [1, 7, 1_234, 1_235, 99_991]) {
    const report = contextReport({
      ...base,
      instructions: "Be brief.",
      tools,
      messages: [call, results],
      usage: usage(input),
    });
    expect(report).toMatchObject({ used: input, estimated: false });
    expect(sumOf(report.items)).toBe(input);
    expect(Object.values(report.byKind).reduce((sum, tokens) => sum + tokens, 0)).toBe(input);
  }
});

test("an estimate is what is known best", () => {
  const request = { ...base, messages: [user("a".repeat(3_984))] };
  expect(contextReport(request)).toMatchObject({ used: 1_000, estimated: true });
  expect(contextReport({ ...request, factor: 1.5 }).used).toBe(1_500);
  expect(contextReport({ ...request, factor: 1.5, estimate: 1_777 })).toMatchObject({ used: 1_777, estimated: true });
  // A provider that says nothing has counted nothing.
  expect(contextReport({ ...request, usage: usage(0) })).toMatchObject({ used: 1_000, estimated: true });
  expect(contextReport({ ...request, usage: usage(Number.NaN) })).toMatchObject({ used: 1_000, estimated: true });
});

test("the window is the model's", () => {
  const limits = { window: 400_000, input: 272_000 };
  expect(contextReport({ ...base, limits })).toMatchObject({ limit: 400_000, usable: 272_000 });
  expect(contextReport({ ...base, reservedOutput: 40_000 })).toMatchObject({ limit: 100_000, usable: 60_000 });
});

test("a block counts where it is in the instructions, and nowhere else", () => {
  const of = (instructions: ReportedRequest["instructions"], ...texts: string[]) =>
    contextReport({ ...base, instructions, blocks: texts.map((text) => ({ label: text, text })) });
  const long = "remember this ".repeat(20);
  expect(of("You are brief.", long).byKind.block).toBe(0);
  expect(of(`You are brief. ${long}`, long).byKind.block).toBe(70);
  // Given in another order than they are written.
  expect(of("AAAAAAAA BBBBBBBB", "BBBBBBBB", "AAAAAAAA").byKind.block).toBe(4);
  // The same text twice, and once.
  expect(of("AAAAAAAA AAAAAAAA", "AAAAAAAA", "AAAAAAAA").byKind.block).toBe(4);
  expect(of("AAAAAAAA", "AAAAAAAA", "AAAAAAAA", "AAAA", "").byKind.block).toBe(2);
  expect(
    of(
      [
        { role: "system", content: `a ${long}` },
        { role: "system", content: "b" },
      ],
      long,
    ).byKind.block,
  ).toBe(70);
});

test("an answer of several steps is from one message", async () => {
  const messages = await toModelMessages(
    {
      id: "m7",
      role: "assistant",
      parts: [
        { type: "step-start" },
        { type: "text", text: "Let me see." },
        { type: "tool-look", toolCallId: "c", state: "output-available", input: {}, output: "blue" },
        { type: "step-start" },
        { type: "text", text: "It is blue." },
      ],
    },
    tools,
  );
  const report = contextReport({ ...base, messages, sourceOf: () => ({ id: "m7" }) });
  expect(report.items.map(({ kind, id }) => [kind, id])).toEqual([
    ["message", "m7"],
    ["tool-output", "m7"],
    ["message", "m7"],
  ]);
  expect(report.used).toBe(Math.ceil(unitsOfMessages(messages)));
});

test("a label is one short line", () => {
  const label = (message: ModelMessage) => contextReport({ ...base, messages: [message] }).items[0]?.label ?? "";
  expect(label(user(`${"a".repeat(59)}🎉🎉`))).toBe(`user: ${"a".repeat(59)}…`);
  expect(label(user(" \n "))).toBe("user");
  expect(label({ role: "assistant", content: [{ type: "reasoning", text: "Hm." }] })).toBe("assistant");
  const only = { type: "tool-call", toolCallId: "c", toolName: "look", input: {} } as const;
  expect(label({ role: "assistant", content: [only] })).toBe("assistant: look()");
  expect(label(user("word ".repeat(50_000))).length).toBeLessThan(80);
});

test("a conversation that was never summarised is named by its newest messages; the older ones are counted together", () => {
  const messages = Array.from({ length: 2_000 }, (_, at) => ({ role: "user" as const, content: `Message ${at}.` }));
  const report = contextReport({ model: "m", limits: { window: 8_000 }, tools: {}, messages });
  expect(report.items).toHaveLength(501);
  expect(report.items[0]).toMatchObject({ kind: "message", label: "1500 older messages" });
  expect(report.items[1]?.label).toContain("Message 1500.");
  expect(report.items.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(report.used);
});

test("what code carried over is apart from the summary", () => {
  const summary = user(`It began well. ${"x".repeat(400)} Files: /a.ts and /b.ts`);
  const sourceOf = () => ({ kind: "summary", carried: "Files: /a.ts and /b.ts" }) as const;
  const report = contextReport({ ...base, messages: [summary], sourceOf });
  expect(report.items.map(({ kind }) => kind)).toEqual(["summary", "carried"]);
  expect(report.byKind.carried).toBe(6);
  expect(sumOf(report.items)).toBe(report.used);
});

test("what is left out has the tokens and the price of having it back, also where a longer request costs more", () => {
  const leftOut = [
    { kind: "superseded", id: "m1", call: "c1", newer: [{ id: "m2", call: "c2" }], label: "read", units: 1_000 },
    { kind: "summarised", id: "m0", compaction: "cmp_1", label: "what was said before", units: 4_000 },
  ] as const;
  const price = { input: 2, output: 9, longer: { than: 3_500, price: { input: 4, output: 9 } } };
  const of = { ...base, messages: [user("x")], usage: usage(1_000), factor: 1.5, leftOut };
  const report = contextReport({ ...of, price });
  expect(report.leftOut.map(({ tokens }) => tokens)).toEqual([1_500, 6_000]);
  expect(report.leftOutByKind).toEqual({ summarised: 6_000, cleared: 0, superseded: 1_500, bounded: 0 });
  expect(report.leftOut[0]).toMatchObject({ id: "m1", call: "c1", newer: [{ id: "m2", call: "c2" }] });
  expect(report.leftOut.map(({ cost }) => cost?.toFixed(4))).toEqual(["0.0030", "0.0260"]);
  expect(report.cost).toEqual({ sent: 0.002, whole: 0.034 });
  expect(contextReport(of)).not.toHaveProperty("cost");
});
