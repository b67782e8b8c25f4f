import type { Sql } from "../port.ts";
import { DueTable, isOneOf, METHOD_COLUMNS, type MethodRow } from "./due-rows.ts";

/**
 * `perdure_schedule`: what is to run at a time. `due` is the row's occurrence, `at` its next try (later while it backs off).
 * `seq`, `due` and `starts` together name one run: a settlement that does not match all three changes nothing.
 */
export const scheduleSchema: readonly string[] = [
  `CREATE TABLE perdure_schedule (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    callback TEXT NOT NULL,
    payload TEXT,
    spec TEXT NOT NULL,
    time_zone TEXT,
    fingerprint INTEGER NOT NULL,
    retry TEXT NOT NULL,
    status TEXT NOT NULL,
    due INTEGER NOT NULL,
    at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    starts INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    failed_at INTEGER,
    created_at INTEGER NOT NULL
  ) STRICT`,
  "CREATE INDEX perdure_schedule_due ON perdure_schedule (at, seq) WHERE status = 'pending'",
  "CREATE INDEX perdure_schedule_running ON perdure_schedule (seq) WHERE status = 'running'",
  "CREATE INDEX perdure_schedule_failed ON perdure_schedule (failed_at, seq) WHERE status = 'failed'",
  "CREATE INDEX perdure_schedule_callback ON perdure_schedule (callback, status, fingerprint)",
];

/** Which turn a schedule comes of. A step of its own: there are tables from before. */
export const scheduleCauseSchema: readonly string[] = ["ALTER TABLE perdure_schedule ADD COLUMN cause TEXT"];

export type ScheduleType = "scheduled" | "delayed" | "cron" | "interval";
/** `failed` is the end of a one-shot whose tries are used up; the row stays to be read. */
export type ScheduleStatus = MethodRow["status"];

/** What a new row needs. `payload` and `retry` are JSON; `spec` is the delay, date, interval or cron expression. */
export interface NewSchedule extends Pick<MethodRow, "id" | "callback" | "payload" | "retry" | "createdAt"> {
  readonly type: ScheduleType;
  readonly spec: string;
  readonly timeZone: string | null;
  readonly fingerprint: number;
  readonly due: number;
}

/** Tries are counted for each occurrence. */
export interface ScheduleRow extends NewSchedule, MethodRow {}

export const scheduleTable = new DueTable<ScheduleRow, number>({
  name: "perdure_schedule",
  columns: [...METHOD_COLUMNS, "type", "spec", "timeZone", "fingerprint", "due"],
  key: "seq",
  run: ["seq", "due", "status"],
  waiting: "status = 'pending'",
  order: "at, seq",
});

export function insertSchedule(db: Sql, row: NewSchedule & Pick<ScheduleRow, "cause">): ScheduleRow {
  return scheduleTable.add(db, { ...row, status: "pending", at: row.due });
}

/** The oldest row that is the same work and has one of `statuses`. The fingerprint finds it, the columns prove it. */
export function findSameSchedule(
  db: Sql,
  row: NewSchedule,
  sameSpec: boolean,
  statuses: readonly ScheduleStatus[],
): ScheduleRow | undefined {
  const conditions = [
    ["callback = ?", row.callback] as const,
    isOneOf("status", statuses),
    ["fingerprint = ?", row.fingerprint] as const,
    ["type = ? AND payload IS ? AND time_zone IS ?", row.type, row.payload, row.timeZone] as const,
    ["spec = ?", sameSpec ? row.spec : undefined] as const,
  ];
  return scheduleTable.list(db, conditions, "seq", 1)[0];
}

/** How many rows wait for `callback`, counting no further than `limit`. */
export function countWaiting(db: Sql, callback: string, limit: number): number {
  const [row] = db.sql<{ n: number }>(
    `SELECT count(*) AS n FROM
      (SELECT 1 FROM perdure_schedule WHERE callback = ? AND status = 'pending' LIMIT (SELECT ?))`,
    callback,
    limit,
  );
  return row?.n ?? 0;
}

interface ScheduleFilter {
  readonly id?: string;
  readonly type?: ScheduleType;
  readonly callback?: string;
  readonly status?: ScheduleStatus;
  readonly from?: number;
  readonly to?: number;
  readonly limit?: number;
}

/** Rows in the order of their next run. */
export function listSchedules(db: Sql, filter: ScheduleFilter): ScheduleRow[] {
  const { id, type, callback, status, from, to, limit } = filter;
  return scheduleTable.list(
    db,
    [
      ...([["id = ?", id] as const, ["type = ?", type] as const, ["callback = ?", callback] as const] as const),
      ...([["status = ?", status] as const, ["at >= ?", from] as const, ["at <= ?", to] as const] as const),
    ],
    "at, seq",
    limit,
  );
}

/** @returns the method that it called; undefined when there is none */
export function deleteSchedule(db: Sql, id: string): string | undefined {
  const query = "DELETE FROM perdure_schedule WHERE id = ? RETURNING callback";
  return db.sql<{ callback: string }>(query, id)[0]?.callback;
}
