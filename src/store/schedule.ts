import type { Sql, SqlValue } from "../port.ts";

/**
 * `perdure_schedule`: what is to run at a time. `due` is the occurrence that the row stands for, `at` the
 * moment of its next try (later than `due` while it backs off). `seq`, `due` and `starts` together name one
 * run: a settlement that does not match all three changes nothing.
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
export type ScheduleStatus = "pending" | "running" | "failed";

/** What a new row needs. `payload` and `retry` are JSON; `spec` is the delay, date, interval or cron expression. */
export interface NewSchedule {
  readonly id: string;
  readonly type: ScheduleType;
  readonly callback: string;
  readonly payload: string | null;
  readonly spec: string;
  readonly timeZone: string | null;
  readonly fingerprint: number;
  readonly retry: string;
  readonly due: number;
  readonly createdAt: number;
}

export interface ScheduleRow extends NewSchedule {
  /** Which turn it comes of, as JSON. */
  readonly cause: string | null;
  readonly seq: number;
  readonly status: ScheduleStatus;
  readonly at: number;
  /** Throws in this occurrence. */
  readonly attempts: number;
  /** Runs begun in this occurrence, also those that the end of a process cut. */
  readonly starts: number;
  readonly error: string | null;
  readonly failedAt: number | null;
}

const COLUMNS =
  "seq, id, type, callback, payload, spec, time_zone AS timeZone, fingerprint, retry, status, due, at, attempts, starts, " +
  "error, failed_at AS failedAt, created_at AS createdAt, cause";

/** Names one run of a row. */
export type ScheduleRunKey = Pick<ScheduleRow, "seq" | "due" | "starts">;
const THIS_RUN = "seq = ? AND due = ? AND starts = ? AND status = 'running'";

export function insertSchedule(db: Sql, row: NewSchedule & Pick<ScheduleRow, "cause">): ScheduleRow {
  const [inserted] = db.sql<ScheduleRow>(
    `INSERT INTO perdure_schedule
      (id, type, callback, payload, spec, time_zone, fingerprint, retry, status, due, at, created_at, cause)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?) RETURNING ${COLUMNS}`,
    row.id,
    row.type,
    row.callback,
    row.payload,
    row.spec,
    row.timeZone,
    row.fingerprint,
    row.retry,
    row.due,
    row.due,
    row.createdAt,
    row.cause,
  );
  return inserted as ScheduleRow;
}

export function readSchedule(db: Sql, id: string): ScheduleRow | undefined {
  return db.sql<ScheduleRow>(`SELECT ${COLUMNS} FROM perdure_schedule WHERE id = ?`, id)[0];
}

/** The oldest row that is the same work and has one of `statuses`. The fingerprint finds it, the columns prove it. */
export function findSameSchedule(
  db: Sql,
  row: NewSchedule,
  sameSpec: boolean,
  statuses: readonly ScheduleStatus[],
): ScheduleRow | undefined {
  return db.sql<ScheduleRow>(
    `SELECT ${COLUMNS} FROM perdure_schedule
      WHERE callback = ? AND status IN (${statuses.map(() => "?").join(", ")}) AND fingerprint = ?
        AND type = ? AND payload IS ? AND time_zone IS ?${sameSpec ? " AND spec = ?" : ""}
      ORDER BY seq LIMIT 1`,
    row.callback,
    ...statuses,
    row.fingerprint,
    row.type,
    row.payload,
    row.timeZone,
    ...(sameSpec ? [row.spec] : []),
  )[0];
}

/** How many rows wait for `callback`, counting no further than `limit`. */
export function countWaiting(db: Sql, callback: string, limit: number): number {
  const [row] = db.sql<{ n: number }>(
    `SELECT count(*) AS n FROM
      (SELECT 1 FROM perdure_schedule WHERE callback = ? AND status = 'pending' LIMIT ?)`,
    callback,
    limit,
  );
  return row?.n ?? 0;
}

export interface ScheduleFilter {
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
  const where: string[] = [];
  const args: SqlValue[] = [];
  const add = (condition: string, value: SqlValue | undefined) => {
    if (value === undefined) return;
    where.push(condition);
    args.push(value);
  };
  add("id = ?", filter.id);
  add("type = ?", filter.type);
  add("callback = ?", filter.callback);
  add("status = ?", filter.status);
  add("at >= ?", filter.from);
  add("at <= ?", filter.to);
  const condition = where.length === 0 ? "" : ` WHERE ${where.join(" AND ")}`;
  return db.sql<ScheduleRow>(
    `SELECT ${COLUMNS} FROM perdure_schedule${condition} ORDER BY at, seq LIMIT ?`,
    ...args,
    filter.limit ?? -1,
  );
}

export function deleteSchedule(db: Sql, id: string): ScheduleRow | undefined {
  return db.sql<ScheduleRow>(`DELETE FROM perdure_schedule WHERE id = ? RETURNING ${COLUMNS}`, id)[0];
}

/** The earliest time at which a waiting row is due. */
export function nextScheduleAt(db: Sql): number | null {
  const [row] = db.sql<{ at: number }>(
    "SELECT at FROM perdure_schedule WHERE status = 'pending' ORDER BY at, seq LIMIT 1",
  );
  return row?.at ?? null;
}

/** The `seq` of waiting rows that are due, in the order in which they are due. */
export function dueSchedules(db: Sql, now: number, limit: number): number[] {
  return db
    .sql<{ seq: number }>(
      "SELECT seq FROM perdure_schedule WHERE status = 'pending' AND at <= ? ORDER BY at, seq LIMIT ?",
      now,
      limit,
    )
    .map((row) => row.seq);
}

/** Counts the start of a waiting row that is due; nothing when it is gone or no longer waits. */
export function startSchedule(db: Sql, seq: number, now: number): ScheduleRow | undefined {
  return db.sql<ScheduleRow>(
    `UPDATE perdure_schedule SET status = 'running', starts = starts + 1
      WHERE seq = ? AND status = 'pending' AND at <= ? RETURNING ${COLUMNS}`,
    seq,
    now,
  )[0];
}

/** A one-shot is done. */
export function finishSchedule(db: Sql, run: ScheduleRunKey): void {
  db.sql(`DELETE FROM perdure_schedule WHERE ${THIS_RUN}`, run.seq, run.due, run.starts);
}

/** Arms the next occurrence. `error` is why this one failed, or null. */
export function rearmSchedule(db: Sql, run: ScheduleRunKey, due: number, error: string | null, now: number): void {
  db.sql(
    `UPDATE perdure_schedule SET status = 'pending', due = ?, at = ?, attempts = 0, starts = 0, error = ?, failed_at = ?
      WHERE ${THIS_RUN}`,
    due,
    due,
    error,
    error === null ? null : now,
    run.seq,
    run.due,
    run.starts,
  );
}

/** Counts a throw and waits until `at` for the next try of the same occurrence. */
export function retrySchedule(db: Sql, run: ScheduleRunKey, at: number, error: string): void {
  db.sql(
    `UPDATE perdure_schedule SET status = 'pending', at = ?, attempts = attempts + 1, error = ? WHERE ${THIS_RUN}`,
    at,
    error,
    run.seq,
    run.due,
    run.starts,
  );
}

/** Ends the row as failed, and keeps only the `keep` rows that failed last. */
export function failSchedule(db: Sql, run: ScheduleRunKey, error: string, now: number, keep: number): void {
  db.sql(
    `UPDATE perdure_schedule SET status = 'failed', attempts = attempts + 1, error = ?, failed_at = ? WHERE ${THIS_RUN}`,
    error,
    now,
    run.seq,
    run.due,
    run.starts,
  );
  db.sql(
    `DELETE FROM perdure_schedule WHERE seq IN
      (SELECT seq FROM perdure_schedule WHERE status = 'failed' ORDER BY failed_at DESC, seq DESC LIMIT -1 OFFSET ?)`,
    keep,
  );
}

/** Makes rows that an earlier life left running wait again. Their starts stay counted. */
export function releaseSchedules(db: Sql): void {
  const [one] = db.sql("SELECT seq FROM perdure_schedule WHERE status = 'running' LIMIT 1");
  if (one !== undefined) db.sql("UPDATE perdure_schedule SET status = 'pending' WHERE status = 'running'");
}
