import { expect, test } from "vitest";
import type { TaskRow } from "../store/task.ts";
import { DEFAULT_RETRY } from "./retry.ts";
import { type CheckedTask, checkTasks } from "./tasks.ts";
import { changesFor, moveAfter } from "./tasks.ts";

const MINUTE = 60_000;
const DAY = 1440 * MINUTE;
const at = (text: string) => Date.parse(`2025-06-${text}Z`);

function task(schedule: string, id = "t", timezone?: string): CheckedTask {
  const declared = { [id]: { schedule, timezone, prompt: "Hi.", retry: { maxAttempts: 3, baseDelayMs: 1000 } } };
  const checked = checkTasks(declared, { timeZone: () => "UTC", retry: DEFAULT_RETRY }).get(id);
  if (checked === undefined) throw new Error("not checked");
  return checked;
}

function row(from: CheckedTask, due: number, more: Partial<TaskRow> = {}): TaskRow {
  const { id, schedule, timeZone } = from;
  return {
    id,
    schedule,
    timeZone,
    due,
    anchor: 0,
    at: due,
    attempts: 0,
    starts: 0,
    lastDue: null,
    error: null,
    ...more,
  };
}

const declare = (...tasks: CheckedTask[]) => new Map(tasks.map((one) => [one.id, one]));
const idle = () => false;

test("new tasks are armed for the future, those that are gone are removed, others are left alone", () => {
  const kept = task("every day at 09:00", "kept");
  const added = task("every day at 09:00", "added");
  const gone = task("every day at 09:00", "gone");
  // It is overdue, and was tried: it stays as it is.
  const rows = [row(kept, at("01T09:00"), { attempts: 1, starts: 2, at: at("03T12:01") }), row(gone, at("04T09:00"))];
  expect(changesFor(rows, declare(kept, added), idle, at("03T12:00"))).toEqual([
    { kind: "remove", id: "gone" },
    {
      kind: "arm",
      task: {
        id: "added",
        schedule: "every day at 09:00",
        timeZone: "UTC",
        anchor: at("03T12:00"),
        due: at("04T09:00"),
      },
    },
  ]);
  expect(changesFor([], declare(), idle, 0)).toEqual([]);
});

test("another schedule, or another zone, arms anew", () => {
  const before = row(task("every day at 09:00"), at("03T09:00"));
  const later = task("every day at 10:00");
  const elsewhere = task("every day at 09:00", "t", "Asia/Kolkata");
  expect(changesFor([before], declare(later), idle, at("03T09:30"))).toMatchObject([
    { kind: "arm", task: { due: at("03T10:00") } },
  ]);
  expect(changesFor([before], declare(elsewhere), idle, at("03T00:00"))).toMatchObject([
    { kind: "arm", task: { timeZone: "Asia/Kolkata", due: at("03T03:30") } },
  ]);
});

test("what runs keeps its occurrence when its schedule changes", () => {
  const before = row(task("every day at 09:00"), at("03T09:00"), { starts: 1 });
  const change = changesFor([before], declare(task("every 5 minutes")), () => true, at("03T09:30"));
  expect(change).toEqual([
    { kind: "change", task: { id: "t", schedule: "every 5 minutes", timeZone: null, anchor: at("03T09:30") } },
  ]);
});

test("an occurrence that has run is not armed again, also if the clock was put back", () => {
  const before = row(task("every day at 09:00"), at("04T09:00"), { lastDue: at("03T09:00") });
  const changed = task("every weekday at 09:00");
  expect(changesFor([before], declare(changed), idle, at("03T08:00"))).toMatchObject([
    { kind: "arm", task: { due: at("04T09:00") } },
  ]);
});

test("a run that threw is tried again until its tries are used up; then the next occurrence comes", () => {
  const one = task("every day at 09:00");
  const due = at("03T09:00");
  const now = due + MINUTE;
  const move = (attempts: number, mayRetry = true) =>
    moveAfter(row(one, due, { attempts }), one, "no", now, mayRetry, () => 1);
  expect(move(0)).toEqual({ kind: "retry", at: now + 1000, error: "no" });
  expect(move(1)).toEqual({ kind: "retry", at: now + 2000, error: "no" });
  expect(move(2)).toEqual({ kind: "next", due: due + DAY, error: "no" });
  expect(move(0, false)).toEqual({ kind: "next", due: due + DAY, error: "no" });
});

test.each([
  ["in time", "03T09:00", "04T09:00"],
  ["late by a minute", "03T09:01", "04T09:00"],
  ["late by days", "06T12:00", "07T09:00"],
  ["at the very next time", "04T09:00", "05T09:00"],
  ["the clock was put back", "03T08:00", "04T09:00"],
  ["the clock was put back by days", "01T08:00", "04T09:00"],
])("after an occurrence comes one in the future: %s", (_, now, next) => {
  const one = task("every day at 09:00");
  const expected = { kind: "next", due: at(next), error: null };
  expect(moveAfter(row(one, at("03T09:00")), one, null, at(now), true)).toEqual(expected);
});

test("an interval keeps its beat, however late it is", () => {
  const one = task("every 10 minutes");
  const next = (late: number) => {
    const move = moveAfter(row(one, 20 * MINUTE, { anchor: 0 }), one, null, 20 * MINUTE + late, true);
    return move.kind === "next" ? move.due / MINUTE : undefined;
  };
  expect([0, 1, 9 * MINUTE, 10 * MINUTE, 95 * MINUTE, -60 * MINUTE].map(next)).toEqual([30, 30, 30, 40, 120, 30]);
});
