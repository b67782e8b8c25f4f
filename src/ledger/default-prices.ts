import type { Price } from "./prices.ts";

/**
 * List prices of well-known models in US dollars per million tokens, as of July 2026. A start, not a bill: prices change, and
 * discounts, batch and regional prices are not in here. To cap costs give your own table. Unlisted models have no known price,
 * not a price of zero.
 */
export const defaultPrices: Readonly<Record<string, Price>> = {
  "claude-fable-5": claude(10, 50),
  "claude-opus-4-8": claude(5, 25),
  "claude-opus-4-7": claude(5, 25),
  "claude-opus-4-6": claude(5, 25),
  "claude-opus-4-5": claude(5, 25),
  "claude-opus-4-1": claude(15, 75),
  "claude-sonnet-5": claude(2, 10),
  "claude-sonnet-4-6": claude(3, 15),
  "claude-sonnet-4-5": claude(3, 15),
  "claude-sonnet-4-0": claude(3, 15),
  "claude-sonnet-4": claude(3, 15),
  "claude-haiku-4-5": claude(1, 5),

  "gpt-5.5": {
    input: 5,
    output: 30,
    cacheRead: 0.5,
    longer: { than: 272_000, price: { input: 10, output: 45, cacheRead: 1 } },
  },
  "gpt-5.4": {
    input: 2.5,
    output: 15,
    cacheRead: 0.25,
    longer: { than: 272_000, price: { input: 5, output: 22.5, cacheRead: 0.5 } },
  },
  "gpt-5.4-mini": { input: 0.75, output: 4.5, cacheRead: 0.075 },
  "gpt-5.4-nano": { input: 0.2, output: 1.25, cacheRead: 0.02 },
  "gpt-5.2": { input: 1.75, output: 14, cacheRead: 0.175 },
  "gpt-5.1": { input: 1.25, output: 10, cacheRead: 0.125 },
  "gpt-5": { input: 1.25, output: 10, cacheRead: 0.125 },
  "gpt-5-mini": { input: 0.25, output: 2, cacheRead: 0.025 },
  "gpt-5-nano": { input: 0.05, output: 0.4, cacheRead: 0.005 },
  "gpt-5-pro": { input: 15, output: 120 },
  "gpt-4.1": { input: 2, output: 8, cacheRead: 0.5 },
  "gpt-4.1-mini": { input: 0.4, output: 1.6, cacheRead: 0.1 },
  "gpt-4.1-nano": { input: 0.1, output: 0.4, cacheRead: 0.025 },
  "gpt-4o": { input: 2.5, output: 10, cacheRead: 1.25 },
  "gpt-4o-mini": { input: 0.15, output: 0.6, cacheRead: 0.075 },
  o3: { input: 2, output: 8, cacheRead: 0.5 },
  "o4-mini": { input: 1.1, output: 4.4, cacheRead: 0.275 },

  "gemini-3.5-flash": { input: 1.5, output: 9, cacheRead: 0.15 },
  "gemini-3.1-pro-preview": {
    input: 2,
    output: 12,
    cacheRead: 0.2,
    longer: { than: 200_000, price: { input: 4, output: 18, cacheRead: 0.4 } },
  },
  "gemini-3.1-flash-lite": { input: 0.25, output: 1.5, cacheRead: 0.025 },
  "gemini-3-flash-preview": { input: 0.5, output: 3, cacheRead: 0.05 },
  "gemini-2.5-pro": {
    input: 1.25,
    output: 10,
    cacheRead: 0.125,
    longer: { than: 200_000, price: { input: 2.5, output: 15, cacheRead: 0.25 } },
  },
  "gemini-2.5-flash": { input: 0.3, output: 2.5, cacheRead: 0.03 },
  "gemini-2.5-flash-lite": { input: 0.1, output: 0.4, cacheRead: 0.01 },

  "grok-4.3": {
    input: 1.25,
    output: 2.5,
    cacheRead: 0.2,
    longer: { than: 200_000, price: { input: 2.5, output: 5, cacheRead: 0.4 } },
  },
  "deepseek-chat": { input: 0.14, output: 0.28, cacheRead: 0.0028 },
  "deepseek-reasoner": { input: 0.14, output: 0.28, cacheRead: 0.0028 },
  "deepseek-v4-flash": { input: 0.14, output: 0.28, cacheRead: 0.0028 },
  "deepseek-v4-pro": { input: 0.435, output: 0.87, cacheRead: 0.003625 },
  "mistral-large-latest": { input: 0.5, output: 1.5 },
  "mistral-medium-latest": { input: 0.4, output: 2 },
  "mistral-small-latest": { input: 0.15, output: 0.6 },
};

/** Anthropic charges a tenth for reading its cache and a quarter more for writing it. */
function claude(input: number, output: number): Price {
  return { input, output, cacheRead: input / 10, cacheWrite: input * 1.25 };
}
