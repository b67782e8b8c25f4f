import { expect, test } from "vitest";
import { aimText, limitOf, type Row, verdictOf } from "../../bench/light/row.ts";

const row = (some: Partial<Row>): Row => ({ what: "x", unit: "ms", ours: 10, aim: { atMost: 10 }, ...some });

test("an aim is met at its limit, missed a little above it, and missed by far behind a quarter", () => {
  expect(verdictOf(row({ ours: 10 }))).toBe("met");
  expect(verdictOf(row({ ours: 10.1 }))).toBe("missed");
  expect(verdictOf(row({ ours: 12.5 }))).toBe("missed");
  expect(verdictOf(row({ ours: 12.6 }))).toBe("far");
});

test("rates are missed when they are too low", () => {
  const aim = { atLeast: 500 };
  expect(verdictOf(row({ ours: 500, aim }))).toBe("met");
  expect(verdictOf(row({ ours: 499, aim }))).toBe("missed");
  expect(verdictOf(row({ ours: 400, aim }))).toBe("missed");
  expect(verdictOf(row({ ours: 399, aim }))).toBe("far");
  expect(verdictOf(row({ ours: 0, aim }))).toBe("far");
});

test("an aim beside the floor follows the floor of the run", () => {
  const aim = { timesFloor: 1.5, plus: 4 };
  expect(limitOf(row({ floor: 4, aim }))).toBe(10);
  expect(verdictOf(row({ ours: 10, floor: 4, aim }))).toBe("met");
  expect(verdictOf(row({ ours: 10, floor: 2, aim }))).toBe("far");
  expect(aimText(row({ floor: 4, aim }))).toBe("≤ 1.5 × floor + 4.00 ms");
});

test("what was not measured is not met", () => {
  expect(verdictOf(row({ ours: Number.NaN }))).toBe("far");
  expect(verdictOf(row({ aim: { timesFloor: 2 } }))).toBe("far");
});
