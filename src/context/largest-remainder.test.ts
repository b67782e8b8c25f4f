import { expect, test } from "vitest";
import { shares } from "./context-report.ts";

test("shares add up to the whole", () => {
  expect(shares([1, 1, 1], 10)).toEqual([4, 3, 3]);
  expect(shares([0.25, 0.5, 0.25], 7)).toEqual([2, 3, 2]);
  expect(shares([5, 0, 5], 10)).toEqual([5, 0, 5]);
  expect(shares([7], 3)).toEqual([3]);
});

test("what is left goes to those who lost most", () => {
  expect(shares([10, 29, 61], 10)).toEqual([1, 3, 6]);
  expect(shares([47, 16, 158, 120, 61, 98], 100)).toEqual([9, 3, 32, 24, 12, 20]);
});

test("without any weight all get the same", () => {
  expect(shares([0, 0], 5)).toEqual([3, 2]);
  expect(shares([], 5)).toEqual([]);
});

test("it is exact for many small weights and large wholes", () => {
  for (let round = 1; round < 200; round++) {
    const weights = Array.from({ length: round }, (_, index) => ((index * 7_919 * round) % 1_000) / 4);
    const whole = (round * 104_729) % 1_000_003;
    const parts = shares(weights, whole);
    expect(parts.reduce((sum, part) => sum + part, 0)).toBe(whole);
    expect(parts.every((part) => Number.isInteger(part) && part >= 0)).toBe(true);
  }
});
