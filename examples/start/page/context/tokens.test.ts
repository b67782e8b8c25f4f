import { expect, test } from "vitest";
import { inTokens, percentOf } from "./tokens.ts";

test("tokens in words", () => {
  expect([0, 1, 2, 12_345.6].map(inTokens)).toEqual(["0 tokens", "1 token", "2 tokens", "12,346 tokens"]);
});

test("a little is not nothing, and nearly all is not all", () => {
  expect([0, 1, 500, 999, 1000, 2000].map((part) => percentOf(part, 1000))).toEqual([0, 1, 50, 99, 100, 100]);
  expect(percentOf(5, 0)).toBe(0);
});
