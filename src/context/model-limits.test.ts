import { expect, test } from "vitest";
import { defaultPrices } from "../ledger/default-prices.ts";
import { defaultModelLimits } from "./default-model-limits.ts";
import { findLimits, limitsOf, type ModelLimits, UNKNOWN_MODEL_LIMITS } from "./model-limits.ts";

const windowOf = (model: string) => findLimits(defaultModelLimits, model)?.window;

test.each([
  ["openai.responses/gpt-5", 400_000],
  ["openai.responses/gpt-5-2025-08-07", 400_000],
  ["openai.chat/gpt-5-mini", 400_000],
  ["openai/gpt-5.5", 1_050_000],
  ["openai/gpt-5.4-mini", 400_000],
  ["openai/gpt-4o-mini", 128_000],
  ["openai/gpt-4.1-nano", 1_047_576],
  ["openai/gpt-4", 8_192],
  ["openai/gpt-4-turbo-2024-04-09", 128_000],
  ["openai/o3-mini", 200_000],
  ["anthropic.messages/claude-opus-4-8", 1_000_000],
  ["anthropic.messages/claude-sonnet-4-5-20250929", 200_000],
  ["anthropic.messages/claude-3-5-haiku-20241022", 200_000],
  ["anthropic.messages/claude-something-new", 200_000],
  ["google.generative-ai/gemini-2.5-pro", 1_048_576],
  ["google.generative-ai/gemini-3-flash-preview", 1_048_576],
  ["mistral.chat/mistral-large-latest", 262_144],
  ["mistral.chat/mistral-large-2411", 131_072],
  ["xai.chat/grok-4.3", 1_000_000],
  ["deepseek.chat/deepseek-chat", 1_000_000],
  ["groq.chat/llama-3.3-70b-versatile", 128_000],
  ["moonshotai/kimi-k2.5", 262_144],
])("%s has a window of %d", (model, window) => {
  expect(windowOf(model)).toBe(window);
});

test.each([
  ["openrouter/openai/gpt-5", "openai/gpt-5"],
  ["gateway/anthropic/claude-sonnet-4.5", "anthropic/claude-sonnet-4-5"],
  ["amazon-bedrock/us.anthropic.claude-opus-4-6-v1:0", "anthropic/claude-opus-4-6"],
  ["amazon-bedrock/anthropic.claude-haiku-4-5-20251001-v1:0", "anthropic/claude-haiku-4-5"],
  ["vertex/claude-opus-4-1@20250805", "anthropic/claude-opus-4-1"],
  ["groq/openai/gpt-oss-120b", "openai/gpt-oss-120b"],
])("%s takes as much as %s", (model, same) => {
  expect(findLimits(defaultModelLimits, model)).toBe(findLimits(defaultModelLimits, same));
  expect(windowOf(model)).toBeDefined();
});

test("each model that has a price has limits", () => {
  expect(Object.keys(defaultPrices).filter((model) => windowOf(model) === undefined)).toEqual([]);
});

test("all limits are possible", () => {
  for (const [pattern, { window, input = window, output = window }] of Object.entries(defaultModelLimits)) {
    expect([pattern, input <= window, output <= window]).toEqual([pattern, true, true]);
    expect(Number.isInteger(window) && Number.isInteger(output)).toBe(true);
  }
});

test("a model that nobody knows is taken to have 128k", () => {
  expect(findLimits(defaultModelLimits, "my/model")).toBeUndefined();
  expect(limitsOf(defaultModelLimits, "my/model")).toBe(UNKNOWN_MODEL_LIMITS);
  expect(UNKNOWN_MODEL_LIMITS).toEqual({ window: 128_000 });
  expect(limitsOf(() => undefined, "my/model")).toBe(UNKNOWN_MODEL_LIMITS);
});

test("an app adds its own, by name, by provider, by beginning, or by a function", () => {
  const table = {
    ...defaultModelLimits,
    "ollama/*": { window: 32_768 },
    "ollama/llama-3.3-70b": { window: 65_536 },
    "*": { window: 16_000 },
  };
  expect(limitsOf(table, "ollama/phi-5").window).toBe(32_768);
  expect(limitsOf(table, "ollama.chat/llama-3.3-70b").window).toBe(65_536);
  expect(limitsOf(table, "openai/gpt-5").window).toBe(400_000);
  expect(limitsOf(table, "my/model").window).toBe(16_000);
  const asked: string[] = [];
  const ask = (model: string) => (asked.push(model), { window: 5_000 });
  expect(limitsOf(ask, "my/model")).toEqual({ window: 5_000 });
  expect(asked).toEqual(["my/model"]);
});

test.each<ModelLimits>([
  { window: 0 },
  { window: -1 },
  { window: Number.NaN },
  { window: "128k" as never },
  {} as never,
  { window: 8_000, input: 0 },
  { window: 8_000, output: Number.POSITIVE_INFINITY },
])("limits that are none are refused: %o", (limits) => {
  expect(() => limitsOf({ "*": limits }, "my/model")).toThrow(/limits of my\/model/);
});
