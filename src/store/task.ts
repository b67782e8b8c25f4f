import type { Sql } from "../port.ts";
import { type DueRow, DueTable } from "./due-rows.ts";

/**
 * `perdure_task`: the scheduled tasks that an agent declared. `due` is the row's occurrence, `at` its next try (later while it
 * backs off). `task_id`, `due` and `starts` together name one run: a settlement that does not match all three changes nothing.
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

export interface TaskRow extends ArmedTask, DueRow {
  readonly at: number;
  /** The occurrence before this one, if it has come to its end. */
  readonly lastDue: number | null;
}

export const taskTable = new DueTable<TaskRow, string>({
  name: "perdure_task",
  columns: ["id", "schedule", "timeZone", "anchor", "due", "at", "attempts", "starts", "lastDue", "error"],
  renamed: { id: "task_id" },
  key: "id",
  run: ["id", "due"],
  waiting: "true",
  order: "at, task_id",
});

/** Adds a task, or gives one that is there another schedule and its next time. What ran last is remembered. */
export function armTask(db: Sql, task: ArmedTask): void {
  taskTable.put(db, { ...task, at: task.due, attempts: 0, starts: 0, error: null }, "(task_id)");
}

/** Gives a task another schedule; the occurrence that it stands for stays. */
export function changeTask(db: Sql, { id, schedule, timeZone, anchor }: Omit<ArmedTask, "due">): void {
  taskTable.update(db, { schedule, timeZone, anchor }, "task_id = ?", id);
}

export function deleteTask(db: Sql, id: string): void {
  taskTable.delete(db, "task_id = ?", id);
}
