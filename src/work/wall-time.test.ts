import { expect, test } from "vitest";
import { instantOf, isTimeZone, wallTimeAt } from "./task-schedule.ts";

const wall = (text: string) => Date.parse(`${text}Z`);
const iso = (at: number | undefined) => at && new Date(at).toISOString();

test.each([
  ["UTC", "2025-07-01T12:00:00.123", "2025-07-01T12:00:00.123Z"],
  ["Asia/Kolkata", "2025-07-01T00:00", "2025-06-30T18:30:00.000Z"],
  ["Asia/Kathmandu", "2025-07-01T00:00", "2025-06-30T18:15:00.000Z"],
  ["Pacific/Kiritimati", "2025-01-01T00:30", "2024-12-31T10:30:00.000Z"],
  ["Pacific/Pago_Pago", "2025-01-01T23:30", "2025-01-02T10:30:00.000Z"],
  ["America/New_York", "2024-02-29T23:59", "2024-03-01T04:59:00.000Z"],
])("%s shows %s at %s", (zone, shown, instant) => {
  expect(iso(instantOf(wall(shown), zone))).toBe(instant);
  expect(iso(wallTimeAt(Date.parse(instant), zone))).toBe(iso(wall(shown)));
});

test.each([
  // skipped: the first instant after the gap
  ["America/New_York", "2025-03-09T02:00", "2025-03-09T07:00:00.000Z"],
  ["America/New_York", "2025-03-09T02:59", "2025-03-09T07:00:00.000Z"],
  ["Australia/Lord_Howe", "2025-10-05T02:15", "2025-10-04T15:30:00.000Z"],
  ["America/Sao_Paulo", "2018-11-04T00:00", "2018-11-04T03:00:00.000Z"],
  ["Africa/Cairo", "2025-04-25T00:30", "2025-04-24T22:00:00.000Z"],
  // a gap that ends at midnight: that instant is in the next day
  ["America/Nuuk", "2025-03-29T23:30", "2025-03-30T01:00:00.000Z"],
  ["Asia/Pyongyang", "2018-05-04T23:45", "2018-05-04T15:00:00.000Z"],
  // twice: the first
  ["America/New_York", "2025-11-02T01:30", "2025-11-02T05:30:00.000Z"],
  ["Australia/Lord_Howe", "2025-04-06T01:45", "2025-04-05T14:45:00.000Z"],
  ["America/Sao_Paulo", "2018-02-17T23:30", "2018-02-18T01:30:00.000Z"],
  // a whole day skipped: it has no times, its neighbours have
  ["Pacific/Apia", "2011-12-29T23:59", "2011-12-30T09:59:00.000Z"],
  ["Pacific/Apia", "2011-12-30T12:00", undefined],
  ["Pacific/Apia", "2011-12-31T00:00", "2011-12-30T10:00:00.000Z"],
])("in %s %s is %s", (zone, shown, instant) => {
  expect(iso(instantOf(wall(shown), zone))).toBe(instant);
});

test("at changes of the clocks in many zones: shown times are found, and nothing is shown in between", () => {
  const hour = 3_600_000;
  const day = 24 * hour;
  const offsetAt = (zone: string, at: number) => wallTimeAt(at, zone) - at;
  let changes = 0;
  for (const zone of Intl.supportedValuesOf("timeZone").filter((_, index) => index % 2 === 0)) {
    for (let at = Date.UTC(2025, 0, 1); at < Date.UTC(2026, 0, 1); at += 20 * day) {
      let [before, after] = [at, at + 20 * day];
      const old = offsetAt(zone, before);
      if (offsetAt(zone, after) === old) continue;
      while (after - before > 1) {
        const middle = Math.floor((before + after) / 2);
        if (offsetAt(zone, middle) === old) before = middle;
        else after = middle;
      }
      changes++;
      for (let shown = after + old - 2 * hour; shown < after + old + 2 * hour; shown += hour / 4) {
        const found = instantOf(shown, zone) ?? 0;
        const isShown = wallTimeAt(found, zone) === shown;
        expect(isShown || found === after, `${zone} ${iso(shown)}`).toBe(true);
        // The first of two: not also an hour, or half of one, before.
        expect(wallTimeAt(found - hour, zone) === shown || wallTimeAt(found - hour / 2, zone) === shown).toBe(false);
      }
    }
  }
  expect(changes).toBeGreaterThan(90);
});

test("zones", () => {
  expect(["UTC", "Europe/London", "America/Argentina/Buenos_Aires"].map(isTimeZone)).toEqual([true, true, true]);
  expect(["", "London", "Mars/Olympus", "Europe/London "].map(isTimeZone)).toEqual([false, false, false, false]);
});
