import { jsonSchema, type ModelMessage, tool } from "ai";
import { expect, test } from "vitest";
import { estimateTokens, reservedTokens } from "./estimate.ts";

const user = (content: string): ModelMessage => ({ role: "user", content });
const of = (...messages: ModelMessage[]): number => reservedTokens(messages, "", {});
const long = "word ".repeat(600);

test("nothing costs nothing, and everything that is sent costs something", () => {
  expect(reservedTokens([], "", {})).toBe(0);
  expect(reservedTokens([], "You are brief.", {})).toBeGreaterThan(0);
  expect(of(user(""))).toBeGreaterThan(0);
  expect(reservedTokens([], "", { look: tool({ inputSchema: jsonSchema({}) }) })).toBeGreaterThan(0);
});

test("it is on the careful side for English", () => {
  // 600 words are about 600 tokens for the known models.
  expect(of(user(long))).toBeGreaterThan(600);
  expect(of(user(long))).toBeLessThan(2 * 600);
});

test("it adds up", () => {
  const [a, b] = [user(long), user("b")];
  expect(of(a, b)).toBe(of(a) + of(b));
  expect(reservedTokens([a], long, {})).toBe(of(a) + reservedTokens([], long, {}));
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
  const cost = (one: typeof small) => reservedTokens([], "", { look: one });
  expect(cost(large)).toBeGreaterThan(cost(small) + 2 * 600);
  expect(reservedTokens([], "", { look: small, see: small })).toBeLessThan(cost(small) * 2 + 2);
});

test("what cannot be written as JSON does not stop it", () => {
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  const call = (input: unknown): ModelMessage => ({
    role: "assistant",
    content: [{ type: "tool-call", toolCallId: "c", toolName: "look", input }],
  });
  expect(of(call(cyclic))).toBe(of(call("")));
  expect(of(call(1n))).toBe(of(call("")));
});

test("a message that was counted is not looked at again", () => {
  let looks = 0;
  const message: ModelMessage = {
    role: "user",
    get content() {
      looks++;
      return "Hello";
    },
  };
  const first = of(message);
  const counted = looks;
  expect(of(message, message)).toBe(2 * first);
  expect(looks).toBe(counted);
});

test("Chinese, Japanese and Korean reserve more than a token a character, other scripts less", () => {
  const empty = of(user(""));
  for (const text of ["请把这份合同翻译成英文", "この契約書を英語に翻訳して", "이 계약서를 영어로 번역해"]) {
    expect(of(user(text)) - empty).toBeGreaterThan(text.replaceAll(" ", "").length);
  }
  expect(of(user("Переведи этот договор")) - empty).toBeLessThan("Переведи этот договор".length);
});

test("what is known about a model makes a reservation larger, never smaller", () => {
  const known = (factor: number) => reservedTokens([user(long)], long, {}, factor);
  expect(known(1.5)).toBeGreaterThan(1.4 * known(1));
  expect(known(0.5)).toBe(known(1));
});

test("a reservation is larger than the estimate", () => {
  for (const text of ["", "a", "Hello, world", long, "请把这份合同翻译成英文", "🎉🎉"]) {
    expect(of(user(text))).toBeGreaterThanOrEqual(estimateTokens([user(text)]));
  }
});

test("an estimate takes text, messages for a model, and stored messages", () => {
  expect(estimateTokens("")).toBe(0);
  expect(estimateTokens("a".repeat(400))).toBe(100);
  expect(estimateTokens("a".repeat(400), 1.5)).toBe(150);
  const stored = { id: "m", role: "user" as const, parts: [{ type: "text" as const, text: long }] };
  expect(estimateTokens([stored])).toBe(estimateTokens([user(long)]));
  expect(estimateTokens([stored, user(long)])).toBe(2 * estimateTokens([stored]));
});
