import type { Sql } from "../port.ts";

/**
 * `perdure_task`: the scheduled tasks that an agent has declared. `due` is the occurrence that the row stands for, `at`
 * the moment of its next try (later than `due` while it backs off). `task_id`, `due` and `starts` together name one
 * run: a settlement that does not match all three changes nothing.
 */
export const taskSchema: readonly string[] = [
  `CREATE TABLE perdure_task (
    task_id TEXT PRIMARY KEY,
    schedule TEXT NOT NULL,
    time_zone TEXT,
    anchor INTEGER NOT NULL,
    due INTEGER NOT NULL,
    at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    starts INTEGER NOT NULL DEFAULT 0,
    last_due INTEGER,
    error TEXT
  ) STRICT, WITHOUT ROWID`,
];

/** Which task, and when its next occurrence is. Times are milliseconds since the epoch. */
export interface ArmedTask {
  readonly id: string;
  readonly schedule: string;
  readonly timeZone: string | null;
  /** What intervals are counted from. */
  readonly anchor: number;
  readonly due: number;
}

export interface TaskRow extends ArmedTask {
  readonly at: number;
  /** Throws in this occurrence. */
  readonly attempts: number;
  /** Runs begun in this occurrence, also those that the end of a process cut. */
  readonly starts: number;
  /** The occurrence before this one, if it has come to its end. */
  readonly lastDue: number | null;
  /** Why the last run failed. */
  readonly error: string | null;
}

const COLUMNS =
  "task_id AS id, schedule, time_zone AS timeZone, anchor, due, at, attempts, starts, last_due AS lastDue, error";

/** Names one run of a row. */
export type TaskRunKey = Pick<TaskRow, "id" | "due" | "starts">;
const THIS_RUN = "task_id = ? AND due = ? AND starts = ?";

export function listTasks(db: Sql): TaskRow[] {
  return db.sql<TaskRow>(`SELECT ${COLUMNS} FROM perdure_task ORDER BY task_id`);
}

/** The row of a run; nothing when it is gone or stands for another run by now. */
export function readTaskRun(db: Sql, run: TaskRunKey): TaskRow | undefined {
  return db.sql<TaskRow>(`SELECT ${COLUMNS} FROM perdure_task WHERE ${THIS_RUN}`, run.id, run.due, run.starts)[0];
}

/** Up to `limit` tasks in the order of their next tries. */
export function nextTasks(db: Sql, limit: number): Pick<TaskRow, "id" | "at">[] {
  return db.sql("SELECT task_id AS id, at FROM perdure_task ORDER BY at, task_id LIMIT ?", limit);
}

/** Adds a task, or gives one that is there another schedule and its next time. What ran last is remembered. */
export function armTask(db: Sql, task: ArmedTask): void {
  db.sql(
    `INSERT INTO perdure_task (task_id, schedule, time_zone, anchor, due, at) VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT (task_id) DO UPDATE SET schedule = excluded.schedule, time_zone = excluded.time_zone,
        anchor = excluded.anchor, due = excluded.due, at = excluded.at, attempts = 0, starts = 0, error = NULL`,
    task.id,
    task.schedule,
    task.timeZone,
    task.anchor,
    task.due,
    task.due,
  );
}

/** Gives a task another schedule; the occurrence that it stands for stays. */
export function changeTask(db: Sql, task: Omit<ArmedTask, "due">): void {
  db.sql(
    "UPDATE perdure_task SET schedule = ?, time_zone = ?, anchor = ? WHERE task_id = ?",
    task.schedule,
    task.timeZone,
    task.anchor,
    task.id,
  );
}

export function deleteTask(db: Sql, id: string): void {
  db.sql("DELETE FROM perdure_task WHERE task_id = ?", id);
}

/** Counts the start of a task that is due; nothing when it is gone or not due. */
export function startTask(db: Sql, id: string, now: number): TaskRow | undefined {
  return db.sql<TaskRow>(
    `UPDATE perdure_task SET starts = starts + 1 WHERE task_id = ? AND at <= ? RETURNING ${COLUMNS}`,
    id,
    now,
  )[0];
}

/** Counts a throw and waits until `at` for the next try of the same occurrence. */
export function retryTask(db: Sql, run: TaskRunKey, at: number, error: string): void {
  db.sql(
    `UPDATE perdure_task SET at = ?, attempts = attempts + 1, error = ? WHERE ${THIS_RUN}`,
    at,
    error,
    run.id,
    run.due,
    run.starts,
  );
}

/** Arms the next occurrence. `error` is why this one failed, or null. */
export function nextTask(db: Sql, run: TaskRunKey, due: number, error: string | null): void {
  db.sql(
    `UPDATE perdure_task SET last_due = due, due = ?, at = ?, attempts = 0, starts = 0, error = ? WHERE ${THIS_RUN}`,
    due,
    due,
    error,
    run.id,
    run.due,
    run.starts,
  );
}
