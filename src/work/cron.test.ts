import { expect, test } from "vitest";
import { nextCronTime } from "./cron.ts";

const at = (text: string) => Date.parse(text);
const times = (expression: string, zone: string, from: string, count: number) => {
  const found: string[] = [];
  for (let now = at(from); found.length < count;) {
    const next = nextCronTime(expression, zone, now);
    if (next === null) break;
    found.push(new Date(next).toISOString());
    now = next;
  }
  return found;
};

test("always later than the time it is asked from", () => {
  expect(times("*/15 * * * *", "UTC", "2025-01-01T00:00:00.000Z", 2)).toEqual([
    "2025-01-01T00:15:00.000Z",
    "2025-01-01T00:30:00.000Z",
  ]);
  expect(times("*/10 * * * * *", "UTC", "2025-01-01T00:00:09.999Z", 1)).toEqual(["2025-01-01T00:00:10.000Z"]);
  expect(times("@daily", "UTC", "2025-01-01T00:00:00.000Z", 1)).toEqual(["2025-01-02T00:00:00.000Z"]);
});

test("a wall clock time stays the same when the clocks change, and runs once", () => {
  // Europe/Berlin skips 02:00-03:00 on 30 March 2025 and has 02:00-03:00 twice on 26 October 2025.
  expect(times("30 2 * * *", "Europe/Berlin", "2025-03-29T00:00:00Z", 3)).toEqual([
    "2025-03-29T01:30:00.000Z",
    "2025-03-30T01:00:00.000Z",
    "2025-03-31T00:30:00.000Z",
  ]);
  expect(times("30 2 * * *", "Europe/Berlin", "2025-10-25T12:00:00Z", 2)).toEqual([
    "2025-10-26T00:30:00.000Z",
    "2025-10-27T01:30:00.000Z",
  ]);
  expect(times("0 9 * * 1", "America/New_York", "2025-03-03T00:00:00Z", 2)).toEqual([
    "2025-03-03T14:00:00.000Z",
    "2025-03-10T13:00:00.000Z",
  ]);
});

test("null when it never holds", () => {
  expect(nextCronTime("0 0 31 2 *", "UTC", at("2025-01-01T00:00:00Z"))).toBeNull();
});

test.each([
  ["", "UTC"],
  ["* * * *", "UTC"],
  ["99 * * * *", "UTC"],
  ["2025-01-01T00:00:00Z", "UTC"],
  ["2025-01-01", "UTC"],
  ["* * * * *", "Mars/Olympus"],
  ["@sometimes", "UTC"],
])("refuses %o in %o", (expression, zone) => {
  expect(() => nextCronTime(expression, zone, 0)).toThrow(expect.objectContaining({ code: "bad_input" }));
});
