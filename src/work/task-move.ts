import type { ArmedTask, TaskRow } from "../store/task.ts";
import { backOffMs } from "./retry.ts";
import type { CheckedTask } from "./task-check.ts";
import { occurrenceAfter } from "./task-schedule.ts";

/** What becomes of a row when its task is declared, or no longer is. */
type TaskChange =
  /** A new task, or one whose schedule is another: it waits for its next time. */
  | { readonly kind: "arm"; readonly task: ArmedTask }
  /** Its schedule is another, but it runs now: the next time is found when that ends. */
  | { readonly kind: "change"; readonly task: Omit<ArmedTask, "due"> }
  | { readonly kind: "remove"; readonly id: string };

/**
 * Brings rows to what is declared. A task that is as it was keeps its next time and what it has tried, so nothing is
 * moved by a start, however often there is one. @returns only what must change
 */
export function changesFor(
  rows: readonly TaskRow[],
  tasks: ReadonlyMap<string, CheckedTask>,
  isRunning: (id: string) => boolean,
  now: number,
): TaskChange[] {
  const changes: TaskChange[] = [];
  const known = new Map(rows.map((row) => [row.id, row]));
  for (const { id } of rows) if (!tasks.has(id)) changes.push({ kind: "remove", id });
  for (const { id, schedule, timeZone, plan } of tasks.values()) {
    const row = known.get(id);
    if (row?.schedule === schedule && row.timeZone === timeZone) continue;
    const task = { id, schedule, timeZone, anchor: now };
    if (row !== undefined && isRunning(id)) {
      changes.push({ kind: "change", task });
    } else {
      // What has run does not run again, also if the clock was put back since.
      const due = occurrenceAfter(plan, timeZone, now, Math.max(now, row?.lastDue ?? now));
      changes.push({ kind: "arm", task: { ...task, due } });
    }
  }
  return changes;
}

/** What comes after a run. */
export type TaskMove =
  /** The same occurrence once more. */
  | { readonly kind: "retry"; readonly at: number; readonly error: string }
  /** This occurrence is over. `error` is why it failed, or null. */
  | { readonly kind: "next"; readonly due: number; readonly error: string | null };

/**
 * Decides after a run that ended with `error`, or with none. What was missed in the meantime is not made up for: the
 * next occurrence is later than now, and later than this one, whatever the clock says. @param mayRetry false: it was
 * cut too often to be tried again
 */
export function moveAfter(
  row: Pick<TaskRow, "anchor" | "due" | "attempts">,
  task: Pick<CheckedTask, "plan" | "timeZone" | "retry">,
  error: string | null,
  now: number,
  mayRetry: boolean,
  random?: () => number,
): TaskMove {
  const tries = row.attempts + 1;
  if (error !== null && mayRetry && tries < task.retry.maxAttempts) {
    return { kind: "retry", at: now + backOffMs(tries, task.retry, random), error };
  }
  const due = occurrenceAfter(task.plan, task.timeZone, row.anchor, Math.max(now, row.due));
  return { kind: "next", due, error };
}
