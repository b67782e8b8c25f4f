import { expect, test } from "vitest";
import { defaultPrices } from "./default-prices.ts";
import { costOf, findPrice, worstCostOf } from "./prices.ts";
import type { Price } from "./prices.ts";
import { readUsage } from "./token-usage.ts";

const price = (input: number): Price => ({ input, output: 10 * input });
const usage = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };

test.each([
  ["openai.responses/gpt-5", 1],
  ["openai/gpt-5-2025-08-07", 1],
  ["gpt-5", 1],
  ["azure.responses/gpt-5", 2],
  ["azure/gpt-5-2025-08-07", 2],
  ["openai/gpt-5-mini", 3],
  ["openai/gpt-5-pro", undefined],
  ["openai/gpt-5.9", undefined],
  ["ollama.chat/llama3:8b", 4],
  ["ollama/gpt-5", 4],
  ["openrouter/anthropic/claude-x", 5],
  ["anthropic.messages/claude-x-20250929", 5],
  ["somebody/else", undefined],
])("%s", (model, expected) => {
  const table = {
    "gpt-5": price(1),
    "azure/gpt-5": price(2),
    "gpt-5-mini": price(3),
    "ollama/*": price(4),
    "anthropic/claude-x": price(5),
  };
  expect(findPrice(table, model)?.input).toBe(expected);
});

test("every model can be priced, and a function can do as it likes", () => {
  expect(findPrice({ "*": price(9), "gpt-*": price(8) }, "a/b")?.input).toBe(9);
  expect(findPrice({ "*": price(9), "gpt-*": price(8) }, "a/gpt-1")?.input).toBe(8);
  expect(findPrice((model) => (model === "a/b" ? price(7) : undefined), "a/b")?.input).toBe(7);
  expect(findPrice((model) => (model === "a/b" ? price(7) : undefined), "a/c")).toBeUndefined();
});

test("what is no price is refused", () => {
  const bad: readonly Price[] = [
    { input: -1, output: 1 },
    { input: 1, output: Number.NaN },
    { input: 1, output: 1, cacheRead: Infinity },
    { input: 1, output: 1, longer: { than: 5, price: { input: 1, output: -1 } } },
  ];
  for (const one of bad) {
    expect(() => findPrice({ "*": one }, "a/b")).toThrow(expect.objectContaining({ code: "bad_config" }));
  }
});

test("each kind of token has its price, in billionths of a dollar", () => {
  const all = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75, reasoning: 20 };
  const used = { input: 1000, cacheRead: 600, cacheWrite: 300, output: 50, reasoning: 20 };
  // 100 × 3 + 600 × 0.3 + 300 × 3.75 + 30 × 15 + 20 × 20, in dollars per million tokens
  expect(costOf(all, used)).toBe(2_455_000);
  expect(costOf({ input: 3, output: 15 }, used)).toBe((1000 * 3 + 50 * 15) * 1000);
  expect(costOf({ input: 0.0028, output: 0 }, { ...usage, input: 1 })).toBe(3);
  expect(costOf({ input: 0.1, output: 0 }, { ...usage, input: 3 })).toBe(300);
  expect(costOf({ input: 0, output: 0 }, used)).toBe(0);
});

test("long calls have other prices, as a whole", () => {
  const tiered: Price = { input: 1, output: 2, longer: { than: 100, price: { input: 3, output: 4 } } };
  expect(costOf(tiered, { ...usage, input: 100, output: 1 })).toBe(102_000);
  expect(costOf(tiered, { ...usage, input: 101, output: 1 })).toBe(307_000);
  expect(worstCostOf(tiered, 101, 1)).toBe(307_000);
});

test("the worst case is never below what it turns out to be", () => {
  for (const [model, one] of Object.entries(defaultPrices)) {
    expect(findPrice(defaultPrices, `x/${model}`)).toBe(one);
    for (const cacheRead of [0, 40]) {
      for (const cacheWrite of [0, 60]) {
        for (const reasoning of [0, 7, 50]) {
          const used = { input: 100, cacheRead, cacheWrite, output: 50, reasoning };
          expect(worstCostOf(one, 100, 50)).toBeGreaterThanOrEqual(costOf(one, used));
        }
      }
    }
  }
});

test("the default table knows dated names, and does not guess", () => {
  expect(findPrice(defaultPrices, "anthropic.messages/claude-sonnet-4-5-20250929")).toMatchObject({
    input: 3,
    output: 15,
  });
  expect(findPrice(defaultPrices, "anthropic/claude-sonnet-4-20250514")).toMatchObject({ input: 3, output: 15 });
  expect(findPrice(defaultPrices, "openai.chat/gpt-4o-2024-11-20")).toMatchObject({ input: 2.5 });
  expect(findPrice(defaultPrices, "openai.chat/gpt-4o-realtime-preview")).toBeUndefined();
  expect(findPrice(defaultPrices, "x/my-finetune")).toBeUndefined();
});

test("usage is read as the AI SDK reports it", () => {
  expect(
    readUsage({
      inputTokens: 100,
      inputTokenDetails: { cacheReadTokens: 60, cacheWriteTokens: 30 },
      outputTokens: 20,
      outputTokenDetails: { reasoningTokens: 5 },
    }),
  ).toEqual({ input: 100, cacheRead: 60, cacheWrite: 30, output: 20, reasoning: 5 });
  expect(readUsage({ inputTokens: 3, totalTokens: 10 })).toMatchObject({ input: 3, output: 7 });
  expect(readUsage({ outputTokens: 3, totalTokens: 10 })).toMatchObject({ input: 7, output: 3 });
  // Parts are never more than the whole.
  expect(
    readUsage({ inputTokens: 1, outputTokens: 2, inputTokenDetails: { cacheReadTokens: 9, cacheWriteTokens: 9 } }),
  ).toMatchObject({ input: 1, cacheRead: 1, cacheWrite: 0 });
  const nothing = [undefined, null, {}, { inputTokens: 0, outputTokens: 0 }, { inputTokens: 3 }];
  for (const one of nothing) expect(readUsage(one)).toBeUndefined();
  expect(readUsage({ inputTokens: Number.NaN, outputTokens: 3 })).toBeUndefined();
  expect(readUsage({ inputTokens: -1, outputTokens: 3 })).toBeUndefined();
});
