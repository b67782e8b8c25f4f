import { jsonSchema, type ModelMessage, tool, type ToolSet } from "ai";
import { beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { loadAiSdk } from "../base/ai-sdk.ts";
import {
  CALL_UNITS,
  MESSAGE_UNITS,
  TOOL_UNITS,
  unitsOfContentPart,
  unitsOfInstructions,
  unitsOfMessage,
  unitsOfMessages,
  unitsOfTool,
  unitsOfTools,
} from "./units.ts";

beforeAll(loadAiSdk);

const words = "word ".repeat(80);
const image = { type: "file", mediaType: "image/png", data: "AAAA" } as const;
const result = (output: unknown): ModelMessage => ({
  role: "tool",
  content: [{ type: "tool-result", toolCallId: "c", toolName: "look", output: output as never }],
});

test("a message is its text and what is added around it", () => {
  expect(unitsOfMessage({ role: "user", content: words })).toBe(100 + MESSAGE_UNITS);
  expect(unitsOfMessage({ role: "system", content: "漢字" })).toBe(2 + MESSAGE_UNITS);
  expect(unitsOfMessages([])).toBe(0);
});

test("a message of parts is the sum of its parts", () => {
  const content = [
    { type: "reasoning", text: words },
    { type: "text", text: words },
    image,
    { type: "tool-call", toolCallId: "c", toolName: "look", input: { at: "a" } },
  ] as const;
  const sum = content.reduce((before, part) => before + unitsOfContentPart(part), MESSAGE_UNITS);
  expect(unitsOfMessage({ role: "assistant", content: [...content] })).toBe(sum);
  expect(sum).toBe(MESSAGE_UNITS + 100 + 100 + 1_600 + CALL_UNITS + 1 + 10 / 4);
});

test("a picture is one, by its old name too", () => {
  expect(unitsOfContentPart({ type: "image", image: new Uint8Array() })).toBe(1_600);
  expect(unitsOfContentPart({ type: "reasoning-file", mediaType: "image/png", data: "AAAA" })).toBe(1_600);
});

test.each([
  ["text", { type: "text", value: words }, 100],
  ["JSON", { type: "json", value: { a: [1, 2] } }, 11 / 4],
  ["an error", { type: "error-text", value: words }, 100],
  ["an error as JSON", { type: "error-json", value: { a: 1 } }, 7 / 4],
  ["a denial", { type: "execution-denied", reason: words }, 100],
  ["a denial without a reason", { type: "execution-denied" }, 0],
])("a result with %s is its name and what it says", (_name, output, units) => {
  expect(unitsOfMessage(result(output))).toBe(MESSAGE_UNITS + CALL_UNITS + 1 + units);
});

test("a result of several things counts each as what it is", () => {
  const value = [
    { type: "text", text: words },
    { type: "file", mediaType: "image/png", data: { type: "data", data: "A".repeat(1_000_000) } },
    { type: "image-data", mediaType: "image/png", data: "AAAA" },
    { type: "image-url", url: "https://example.com/a.png" },
    { type: "file-url", url: "https://example.com/a.pdf", mediaType: "application/pdf" },
    { type: "file-id", fileId: "f" },
  ];
  const units = unitsOfMessage(result({ type: "content", value })) - MESSAGE_UNITS - CALL_UNITS - 1;
  expect(units).toBe(100 + 3 * 1_600 + 10_000 + 1_600);
});

test("what the SDK keeps to itself weighs nothing", () => {
  expect(unitsOfContentPart({ type: "tool-approval-request", approvalId: "a", toolCallId: "c" })).toBe(0);
  expect(unitsOfContentPart({ type: "tool-approval-response", approvalId: "a", approved: true })).toBe(0);
});

test("instructions count in each of their forms", () => {
  expect(unitsOfInstructions(undefined)).toBe(0);
  expect(unitsOfInstructions("")).toBe(0);
  const one = { role: "system", content: words } as const;
  expect(unitsOfInstructions(words)).toBe(100 + MESSAGE_UNITS);
  expect(unitsOfInstructions(one)).toBe(unitsOfInstructions(words));
  expect(unitsOfInstructions([one, one])).toBe(2 * unitsOfInstructions(words));
});

test("a tool is its name, its description and its schema as it is sent", () => {
  const schema = { type: "object", properties: { city: { type: "string" } } } as const;
  const units = (JSON.stringify(schema).length + "weather".length + "Says it.".length) / 4;
  const weather = tool({ description: "Says it.", inputSchema: jsonSchema(schema) });
  expect(unitsOfTool("weather", weather)).toBe(TOOL_UNITS + units);
  expect(unitsOfTools({ weather, weathEr: weather })).toBe(2 * (TOOL_UNITS + units));
  expect(unitsOfTools({})).toBe(0);
});

test("a schema of another library counts as what it becomes", () => {
  const inputSchema = z.object({ city: z.string().describe(words) });
  const units = unitsOfTool("a", tool({ inputSchema }));
  expect(units).toBeGreaterThan(TOOL_UNITS + 100);
  expect(units).toBeLessThan(TOOL_UNITS + 100 + 60);
});

test("a schema that comes later is counted when it is there", async () => {
  const later = Promise.resolve({ type: "object", description: words } as const);
  const one = tool({ inputSchema: jsonSchema(later) });
  const first = unitsOfTool("a", one);
  expect(first).toBeGreaterThan(TOOL_UNITS);
  await later;
  await Promise.resolve();
  expect(unitsOfTool("a", one)).toBe(TOOL_UNITS + (1 + JSON.stringify(await later).length) / 4);
});

test("a tool that cannot be shown does not stop it", () => {
  const bad = tool({
    inputSchema: jsonSchema(() => {
      throw new Error("no schema");
    }),
  });
  expect(unitsOfTool("a", bad)).toBeGreaterThan(TOOL_UNITS);
  expect(unitsOfTool("a", {} as ToolSet[string])).toBe(TOOL_UNITS + 0.25);
  const search = { type: "provider", id: "openai.search", name: "search", args: { size: "low" } } as unknown;
  expect(unitsOfTool("a", search as ToolSet[string])).toBe(TOOL_UNITS + (1 + '{"size":"low"}'.length) / 4);
});

test("a message and a schema are looked at once", () => {
  let looks = 0;
  const message: ModelMessage = {
    role: "user",
    get content() {
      looks++;
      return "Hello";
    },
  };
  expect(unitsOfMessages([message, message])).toBe(2 * unitsOfMessage(message));
  expect(looks).toBe(1);
  let schemas = 0;
  const one = tool({ inputSchema: jsonSchema(() => (schemas++, {})) });
  expect(unitsOfTools({ a: one, b: one })).toBe(2 * unitsOfTool("a", one));
  expect(schemas).toBe(1);
});
