import { jsonSchema, type ModelMessage, tool } from "ai";
import { expect, test } from "vitest";
import { estimateTokens } from "./estimate.ts";

const user = (content: string): ModelMessage => ({ role: "user", content });
const of = (...messages: ModelMessage[]): number => estimateTokens(messages, "", {});
const long = "word ".repeat(600);

test("nothing costs nothing, and everything that is sent costs something", () => {
  expect(estimateTokens([], "", {})).toBe(0);
  expect(estimateTokens([], "You are brief.", {})).toBeGreaterThan(0);
  expect(of(user(""))).toBeGreaterThan(0);
  expect(estimateTokens([], "", { look: tool({ inputSchema: jsonSchema({}) }) })).toBeGreaterThan(0);
});

test("it is on the careful side for English", () => {
  // 600 words are about 600 tokens for the known models.
  expect(of(user(long))).toBeGreaterThan(600);
  expect(of(user(long))).toBeLessThan(2 * 600);
});

test("it adds up", () => {
  const [a, b] = [user(long), user("b")];
  expect(of(a, b)).toBe(of(a) + of(b));
  expect(estimateTokens([a], long, {})).toBe(of(a) + estimateTokens([], long, {}));
});

test("a text counts the same in parts", () => {
  expect(of({ role: "user", content: [{ type: "text", text: long }] })).toBe(of(user(long)));
  expect(of({ role: "assistant", content: [{ type: "reasoning", text: long }] })).toBe(of(user(long)));
});

test("media cost what they show, not what their bytes are", () => {
  const image = (data: string): ModelMessage => ({
    role: "user",
    content: [{ type: "file", mediaType: "image/png", data }],
  });
  expect(of(image("A".repeat(3_000_000)))).toBe(of(image("AAAA")));
  expect(of(image("AAAA"))).toBeGreaterThan(1_000);
});

test("calls and their results count by their length", () => {
  const input = { path: "a".repeat(3_000) };
  const call: ModelMessage = {
    role: "assistant",
    content: [{ type: "tool-call", toolCallId: "c", toolName: "look", input }],
  };
  const result = (output: unknown): ModelMessage => ({
    role: "tool",
    content: [
      { type: "tool-result", toolCallId: "c", toolName: "look", output: { type: "json", value: output as never } },
    ],
  });
  expect(of(call)).toBeGreaterThan(1_000);
  expect(of(result(input))).toBeGreaterThan(1_000);
  expect(of(result({}))).toBeLessThan(100);
});

test("an image in a tool's result counts as an image, a text in it as a text", () => {
  const result = (data: string): ModelMessage => ({
    role: "tool",
    content: [
      {
        type: "tool-result",
        toolCallId: "c",
        toolName: "look",
        output: {
          type: "content",
          value: [
            { type: "text", text: long },
            { type: "file", mediaType: "image/png", data: { type: "data", data } },
          ],
        },
      },
    ],
  });
  const image: ModelMessage = { role: "user", content: [{ type: "file", mediaType: "image/png", data: "AAAA" }] };
  expect(of(result("A".repeat(3_000_000)))).toBe(of(result("AAAA")));
  expect(of(result("AAAA"))).toBeGreaterThanOrEqual(of(image) + of(user(long)) - of(user("")) * 2);
});

test("a tool counts with its name, description and schema", () => {
  const small = tool({ inputSchema: jsonSchema({ type: "object" }) });
  const large = tool({
    description: long,
    inputSchema: jsonSchema({ type: "object", properties: { a: { type: "string", description: long } } }),
  });
  const cost = (one: typeof small) => estimateTokens([], "", { look: one });
  expect(cost(large)).toBeGreaterThan(cost(small) + 2 * 600);
  expect(estimateTokens([], "", { look: small, see: small })).toBeLessThan(cost(small) * 2 + 2);
});

test("what cannot be written as JSON does not stop it", () => {
  const input: Record<string, unknown> = {};
  input.self = input;
  const message: ModelMessage = {
    role: "assistant",
    content: [{ type: "tool-call", toolCallId: "c", toolName: "look", input }],
  };
  expect(of(message)).toBe(of(user("")));
  expect(
    of({ role: "assistant", content: [{ type: "tool-call", toolCallId: "c", toolName: "look", input: 1n }] }),
  ).toBe(of(user("")));
});

test("each message is looked at once", () => {
  let looks = 0;
  const message: ModelMessage = {
    role: "user",
    get content() {
      looks++;
      return "Hello";
    },
  };
  const first = of(message);
  expect(of(message, message)).toBe(2 * first);
  expect(looks).toBe(1);
});
