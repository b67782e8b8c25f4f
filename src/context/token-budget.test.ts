import { expect, test } from "vitest";
import type { Usage } from "../ledger/token-usage.ts";
import { BACKGROUND_SHARE, callTokens, estimateRequest, isOverflow, PROACTIVE_SHARE } from "./token-budget.ts";
import { RESERVED_OUTPUT_TOKENS, usable, WAIT_SHARE } from "./token-budget.ts";

const usage = (more: Partial<Usage>): Usage => ({
  ...{ input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 },
  ...more,
});
const tokens = (input: number, output = 0, read = 0, write = 0) => ({ input, output, cache: { read, write } });

test("the shares are in order", () => {
  expect(BACKGROUND_SHARE).toBeLessThan(WAIT_SHARE);
  expect(WAIT_SHARE).toBeLessThan(PROACTIVE_SHARE);
  expect(PROACTIVE_SHARE).toBeLessThan(1);
});

test("the answer is set aside from the window", () => {
  expect(usable({ window: 200_000, output: 64_000 })).toBe(136_000);
  expect(usable({ window: 200_000 })).toBe(200_000 - RESERVED_OUTPUT_TOKENS);
  expect(usable({ window: 200_000, output: 4_096 })).toBe(200_000 - RESERVED_OUTPUT_TOKENS);
});

test("what is asked for counts instead of what the model could say", () => {
  const limits = { window: 200_000, output: 64_000 };
  expect(usable(limits, 32_000)).toBe(168_000);
  expect(usable(limits, 1_000)).toBe(200_000 - RESERVED_OUTPUT_TOKENS);
  expect(usable(limits, 0)).toBe(136_000);
  expect(usable(limits, Number.NaN)).toBe(136_000);
});

test("an input limit wins, but no more than the window", () => {
  expect(usable({ window: 400_000, input: 272_000, output: 128_000 })).toBe(272_000);
  expect(usable({ window: 400_000, input: 272_000, output: 128_000 }, 200_000)).toBe(272_000);
  expect(usable({ window: 8_000, input: 20_000 })).toBe(8_000);
});

test("half of a small window stays usable", () => {
  expect(usable({ window: 4_096 })).toBe(2_048);
  expect(usable({ window: 8_192 })).toBe(4_096);
  expect(usable({ window: 8_192, output: 8_192 })).toBe(4_096);
  expect(usable({ window: 32_000 })).toBe(16_000);
  expect(usable({ window: 33_000 })).toBe(17_000);
  expect(usable({ window: 131_072, output: 131_072 })).toBe(65_536);
  expect(usable({ window: 4_097 })).toBe(2_048);
});

test("a call overflows when what it was sent and said is more than what is usable", () => {
  const limits = { window: 100_000, output: 5_000 };
  expect(isOverflow({ tokens: tokens(100_000, 10_000, 5_000), limits })).toBe(true);
  expect(isOverflow({ tokens: tokens(70_000, 10_000, 4_000), limits })).toBe(false);
  expect(isOverflow({ tokens: tokens(70_000, 10_000, 4_001), limits })).toBe(true);
});

test("cached input counts, read and written", () => {
  const limits = { window: 100_000 };
  expect(isOverflow({ tokens: tokens(1_000, 0, 83_001), limits })).toBe(true);
  expect(isOverflow({ tokens: tokens(1_000, 0, 0, 83_001), limits })).toBe(true);
  expect(isOverflow({ tokens: tokens(1_000, 0, 41_500, 41_500), limits })).toBe(false);
});

test("the ledger's input includes what was cached, and is not counted twice", () => {
  const used = usage({ input: 80_000, output: 3_000, cacheRead: 60_000, cacheWrite: 5_000 });
  expect(callTokens(used)).toEqual(tokens(15_000, 3_000, 60_000, 5_000));
  expect(isOverflow({ tokens: callTokens(used), limits: { window: 100_000 } })).toBe(false);
});

test("usage without numbers overflows nothing", () => {
  const limits = { window: 4_000 };
  expect(isOverflow({ tokens: tokens(0), limits })).toBe(false);
  expect(isOverflow({ tokens: tokens(Number.NaN, undefined as never, -5), limits })).toBe(false);
});

test("a request is what the last call used, and an estimate of what came after", () => {
  const lastUsage = usage({ input: 50_000, output: 2_000, cacheRead: 45_000 });
  const request = { lastUsage, factor: 1.2, unitsBefore: 40_000, unitsAfter: 1_000 };
  expect(estimateRequest(request)).toEqual({ tokens: 53_200, from: "usage" });
  expect(estimateRequest({ ...request, unitsAfter: 0 })).toEqual({ tokens: 52_000, from: "usage" });
});

test("without a call that counted, all of it is estimated", () => {
  const request = { factor: 1.2, unitsBefore: 40_000, unitsAfter: 1_000 };
  const all = { tokens: 49_200, from: "units" };
  expect(estimateRequest(request)).toEqual(all);
  expect(estimateRequest({ ...request, lastUsage: usage({}) })).toEqual(all);
  expect(estimateRequest({ ...request, lastUsage: usage({ input: Number.NaN, output: Number.NaN }) })).toEqual(all);
});

test("usage that cannot be is not trusted", () => {
  const request = { factor: 1, unitsBefore: 40_000, unitsAfter: 0 };
  // Only what was not cached.
  expect(estimateRequest({ ...request, lastUsage: usage({ input: 12, output: 300 }) }).from).toBe("units");
  // The sum of many calls.
  expect(estimateRequest({ ...request, lastUsage: usage({ input: 900_000, output: 1 }) }).from).toBe("units");
  // Half or double is a script that is counted differently.
  expect(estimateRequest({ ...request, lastUsage: usage({ input: 20_000 }) }).from).toBe("usage");
  expect(estimateRequest({ ...request, lastUsage: usage({ input: 80_000 }) }).from).toBe("usage");
});

test("a short request with much that the provider adds is trusted", () => {
  const lastUsage = usage({ input: 700, output: 20 });
  expect(estimateRequest({ lastUsage, factor: 1, unitsBefore: 30, unitsAfter: 10 })).toEqual({
    tokens: 730,
    from: "usage",
  });
});

test("a request that has become shorter is estimated as a whole", () => {
  const lastUsage = usage({ input: 50_000, output: 2_000 });
  expect(estimateRequest({ lastUsage, factor: 1.2, unitsBefore: 40_000, unitsAfter: -30_000 })).toEqual({
    tokens: 12_000,
    from: "units",
  });
});
