import { expect, test } from "vitest";
import { occurrenceAfter, parseSchedule } from "./task-schedule.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

test.each([
  ["every minute", { kind: "interval", step: MINUTE }],
  ["every hour", { kind: "interval", step: HOUR }],
  ["every 1 minute", { kind: "interval", step: MINUTE }],
  ["every 5 minutes", { kind: "interval", step: 5 * MINUTE }],
  ["every 100000 hours", { kind: "interval", step: 100_000 * HOUR }],
  ["every day at 00:00", { kind: "wall-clock", days: [0, 1, 2, 3, 4, 5, 6], time: 0 }],
  ["every weekday at 23:59", { kind: "wall-clock", days: [1, 2, 3, 4, 5], time: 24 * HOUR - MINUTE }],
  ["every week on sunday at 09:30", { kind: "wall-clock", days: [0], time: 9.5 * HOUR }],
  ["every week on monday,wednesday at 09:00", { kind: "wall-clock", days: [1, 3], time: 9 * HOUR }],
  ["every day at 08:00 in Europe/London", { kind: "wall-clock", zone: "Europe/London" }],
  [
    "every week on friday at 08:00 in America/Argentina/Salta",
    { kind: "wall-clock", days: [5], zone: "America/Argentina/Salta" },
  ],
])("%s", (text, plan) => {
  expect(parseSchedule(text)).toMatchObject(plan);
});

test.each([
  ["", "none of the forms"],
  ["daily", "none of the forms"],
  ["Every day at 09:00", "none of the forms"],
  [" every day at 09:00", "none of the forms"],
  ["every day at 09:00 ", "none of the forms"],
  ["every day", "none of the forms"],
  ["every day at 09:00 in", "none of the forms"],
  ["every 5 minutes in Europe/London", "none of the forms"],
  ["every 5 seconds", "none of the forms"],
  ["every week at 09:00", "none of the forms"],
  ["every week on monday, tuesday at 09:00", "none of the forms"],
  ["every minutes", "how many"],
  ["every 0 minutes", '"0"'],
  ["every -1 hours", '"-1"'],
  ["every 1.5 hours", '"1.5"'],
  ["every 1e3 minutes", '"1e3"'],
  ["every 05 minutes", '"05"'],
  ["every 100001 minutes", "from 1 to 100000"],
  ["every NaN minutes", '"NaN"'],
  ["every day at 9:00", '"9:00" is not a time'],
  ["every day at 24:00", '"24:00"'],
  ["every day at 09:60", '"09:60"'],
  ["every day at 09:00:00", '"09:00:00"'],
  ["every day at 9am", '"9am"'],
  ["every week on mon at 09:00", '"mon" is not a day'],
  ["every week on monday, at 09:00", '"" is not a day'],
  ["every week on monday,Tuesday at 09:00", '"Tuesday"'],
])("%o is refused: %s", (text, why) => {
  expect(parseSchedule(text)).toContain(why);
});

/** Occurrences from a time on, in UTC, as the agent would arm them. */
function occurrences(text: string, zone: string | null, from: string, count: number): string[] {
  const plan = parseSchedule(text);
  if (typeof plan === "string") throw new Error(plan);
  const found: number[] = [];
  const anchor = Date.parse(from);
  while (found.length < count) found.push(occurrenceAfter(plan, zone, anchor, found.at(-1) ?? anchor));
  return found.map((at) => new Date(at).toISOString().slice(0, 16));
}

test.each([
  // [schedule, zone, from, occurrences]
  [
    "every day at 02:30",
    "America/New_York",
    "2025-03-08T00:00Z",
    ["2025-03-08T07:30", "2025-03-09T07:00", "2025-03-10T06:30"],
  ],
  [
    "every day at 01:30",
    "America/New_York",
    "2025-11-01T00:00Z",
    ["2025-11-01T05:30", "2025-11-02T05:30", "2025-11-03T06:30"],
  ],
  [
    "every day at 09:00",
    "America/New_York",
    "2025-11-01T00:00Z",
    ["2025-11-01T13:00", "2025-11-02T14:00", "2025-11-03T14:00"],
  ],
  ["every week on sunday at 01:30", "Europe/London", "2025-03-24T00:00Z", ["2025-03-30T01:00", "2025-04-06T00:30"]],
  ["every week on sunday at 01:30", "Europe/London", "2025-10-20T00:00Z", ["2025-10-26T00:30", "2025-11-02T01:30"]],
  [
    "every weekday at 09:00",
    "Europe/London",
    "2025-03-27T12:00Z",
    ["2025-03-28T09:00", "2025-03-31T08:00", "2025-04-01T08:00"],
  ],
  [
    "every day at 02:15",
    "Australia/Lord_Howe",
    "2025-10-03T20:00Z",
    ["2025-10-04T15:30", "2025-10-05T15:15", "2025-10-06T15:15"],
  ],
  [
    "every day at 01:45",
    "Australia/Lord_Howe",
    "2025-04-04T20:00Z",
    ["2025-04-05T14:45", "2025-04-06T15:15", "2025-04-07T15:15"],
  ],
  [
    "every day at 00:30",
    "America/Sao_Paulo",
    "2018-11-03T00:00Z",
    ["2018-11-03T03:30", "2018-11-04T03:00", "2018-11-05T02:30"],
  ],
  [
    "every day at 23:30",
    "America/Sao_Paulo",
    "2018-02-17T00:00Z",
    ["2018-02-17T01:30", "2018-02-18T01:30", "2018-02-19T02:30"],
  ],
  ["every day at 05:30", "Asia/Kolkata", "2025-01-01T00:00Z", ["2025-01-02T00:00", "2025-01-03T00:00"]],
  // The gap ends at midnight: the occurrence of Saturday comes with the first instant of Sunday, and Sunday has its own.
  ["every day at 23:30", "America/Nuuk", "2025-03-29T12:00Z", ["2025-03-30T01:00", "2025-03-31T00:30"]],
  ["every week on saturday at 23:30", "America/Nuuk", "2025-03-29T12:00Z", ["2025-03-30T01:00", "2025-04-06T00:30"]],
  // 30 December did not exist.
  [
    "every day at 09:00",
    "Pacific/Apia",
    "2011-12-29T00:00Z",
    ["2011-12-29T19:00", "2011-12-30T19:00", "2011-12-31T19:00"],
  ],
  ["every week on friday at 09:00", "Pacific/Apia", "2011-12-24T00:00Z", ["2012-01-05T19:00", "2012-01-12T19:00"]],
  // Leap days, and years without.
  [
    "every day at 12:00",
    "Europe/London",
    "2024-02-28T00:00Z",
    ["2024-02-28T12:00", "2024-02-29T12:00", "2024-03-01T12:00"],
  ],
  ["every day at 12:00", "Europe/London", "2025-02-28T00:00Z", ["2025-02-28T12:00", "2025-03-01T12:00"]],
  ["every week on thursday at 12:00", "UTC", "2024-02-23T00:00Z", ["2024-02-29T12:00", "2024-03-07T12:00"]],
  [
    "every week on monday,wednesday,monday at 00:00",
    "UTC",
    "2024-12-30T00:00Z",
    ["2025-01-01T00:00", "2025-01-06T00:00"],
  ],
])("%s in %s from %s", (text, zone, from, expected) => {
  expect(occurrences(text, zone, from, expected.length)).toEqual(expected);
});

test("an interval keeps its beat from its anchor, through changes of the clocks", () => {
  const plan = { kind: "interval", step: 90 * MINUTE } as const;
  expect(occurrenceAfter(plan, null, 1000, 1000)).toBe(1000 + 90 * MINUTE);
  expect(occurrenceAfter(plan, null, 1000, 1000 + 90 * MINUTE - 1)).toBe(1000 + 90 * MINUTE);
  expect(occurrenceAfter(plan, null, 1000, 1000 + 90 * MINUTE)).toBe(1000 + 180 * MINUTE);
  expect(occurrenceAfter(plan, null, 1000, 1000 + 1000 * MINUTE)).toBe(1000 + 1080 * MINUTE);
  // The clock was put back behind the anchor.
  expect(occurrenceAfter(plan, null, 1000, -5000 * MINUTE)).toBe(1000 + 90 * MINUTE);
});

test.each(["America/New_York", "Europe/London", "Australia/Lord_Howe", "America/Nuuk", "Africa/Cairo"])(
  "each day of a year has one occurrence, about a day after the one before: %s",
  (zone) => {
    const found = occurrences("every day at 02:30", zone, "2024-01-01T12:00Z", 366).map((at) => Date.parse(`${at}Z`));
    const waits = found.slice(1).map((at, index) => (at - (found[index] ?? 0)) / HOUR);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(23);
    expect(Math.max(...waits)).toBeLessThanOrEqual(25);
  },
);
