import { errorText, PerdureError } from "../base/error.ts";
import type { DeliverTo } from "../store/delivery.ts";
import { type ArmedTask, armTask, changeTask, deleteTask, type TaskRow, taskTable } from "../store/task.ts";
import { type Outcome, runCallback } from "./callback.ts";
import { DueWork } from "./due-work.ts";
import { encodeJson } from "../base/json.ts";
import { cutTooOften, wasCutTooOften } from "./method-work.ts";
import type { CheckedTask } from "./task-check.ts";
import type { ScheduledTaskContext } from "./task-types.ts";
import type { WorkContext } from "./work.ts";
import { backOffMs } from "./retry.ts";
import { occurrenceAfter } from "./task-schedule.ts";

/** What tasks ask of the agent that declared them. */
export interface TaskHooks {
  /** Runs code of the user as the agent. Throws what it throws. */
  as<T>(work: () => T): T;
  /**
   * Stores a turn that answers `prompt`, once per occurrence. In a transaction: it starts when that is committed.
   * If it throws, that is taken for trouble of the store, and it is called again.
   */
  accept(prompt: string, occurrence: ScheduledTaskContext, deliverTo: DeliverTo | undefined): void;
  /** An occurrence was given up. Must not throw. */
  failed(error: unknown): void;
}

/**
 * The tasks that an agent has declared. All is in rows, one per task: the occurrence that it waits for. That runs once
 * it is due, late if the host was down; then the next one in the future is armed, whatever became of it. A task never
 * overlaps itself.
 */
export class Tasks extends DueWork<string> {
  readonly #hooks: TaskHooks;
  #tasks: ReadonlyMap<string, CheckedTask> = new Map();

  constructor(context: WorkContext, hooks: TaskHooks) {
    super(context);
    this.#hooks = hooks;
  }

  /**
   * From now on these are the tasks: new ones are armed, those with another schedule are armed anew, others are left as
   * they are, and rows of no task go. One commit, if there is anything to change.
   */
  reconcile(tasks: ReadonlyMap<string, CheckedTask>): void {
    const { host } = this.context;
    const isRunning = (id: string) => this.isRunning(id);
    const changes = changesFor(taskTable.list(host, [], "task_id"), tasks, isRunning, host.clock.now());
    if (changes.length > 0) {
      host.tx(() => {
        for (const change of changes) {
          if (change.kind === "arm") armTask(host, change.task);
          else if (change.kind === "change") changeTask(host, change.task);
          else deleteTask(host, change.id);
        }
      });
    }
    host.afterTx((committed) => {
      if (committed) this.#tasks = tasks;
    });
    this.changed();
  }

  override runDue(): void {
    if (this.#tasks.size > 0) super.runDue();
  }

  protected takeOver(): void {}

  /** A row may come back to life while its old run goes on: then it waits for that. */
  protected waiting(limit: number) {
    if (this.#tasks.size === 0) return [];
    const isFree = ({ key }: { key: string }) => this.#tasks.has(key) && !this.isRunning(key);
    return taskTable
      .waiting(this.context.host, limit + this.running)
      .filter(isFree)
      .slice(0, limit);
  }

  protected start(id: string, ended: () => void): void {
    const { host } = this.context;
    const task = this.#tasks.get(id);
    const row = task && taskTable.start(host, id, host.clock.now());
    if (task === undefined || row === undefined) return ended();
    const occurrence = occurrenceOf(host.id, task, row.due);
    let move: TaskMove | undefined;
    runCallback(this.context, () => this.halted, {
      // The class declares it: nobody's turn did.
      cause: null,
      call: () => this.#call(task, row, occurrence),
      store: (outcome) => {
        move = this.#store(task, row, occurrence, outcome);
      },
      stored: (outcome) => {
        this.#tell(task, row, occurrence, outcome, move);
        ended();
      },
    });
  }

  /** @returns for a prompt its text, or a promise of it */
  #call({ id, action }: CheckedTask, row: TaskRow, occurrence: ScheduledTaskContext): unknown {
    if (wasCutTooOften(row)) throw cutTooOften(id);
    if (action.kind === "handler") return this.#hooks.as(() => action.call(occurrence));
    const text = this.#hooks.as(() => action.text());
    return typeof text === "string"
      ? checkPrompt(id, text)
      : Promise.resolve(text).then((value) => checkPrompt(id, value));
  }

  /** @returns undefined when the task is gone: then nobody waits for its end. */
  #store(called: CheckedTask, run: TaskRow, occurrence: ScheduledTaskContext, outcome: Outcome): TaskMove | undefined {
    const { host } = this.context;
    // Its schedule may be another by now.
    const task = this.#tasks.get(run.id);
    const row = taskTable.current(host, run);
    if (task === undefined || row === undefined) return undefined;
    if (outcome.ok && typeof outcome.value === "string" && called.action.kind === "prompt") {
      this.#hooks.accept(outcome.value, occurrence, called.action.deliverTo);
    }
    const error = outcome.ok ? null : errorText(outcome.error);
    const move = moveAfter(row, task, error, host.clock.now(), !wasCutTooOften(row));
    const { error: why } = move;
    const { due } = row;
    taskTable.change(
      host,
      row,
      move.kind === "retry"
        ? { at: move.at, attempts: row.attempts + 1, error: why }
        : { lastDue: due, due: move.due, at: move.due, attempts: 0, starts: 0, error: why },
    );
    return move;
  }

  #tell(
    { id }: CheckedTask,
    row: TaskRow,
    { occurrenceKey }: ScheduledTaskContext,
    outcome: Outcome,
    move: TaskMove | undefined,
  ): void {
    const { host } = this.context;
    const end = outcome.ok ? { ok: true } : { ok: false, error: errorText(outcome.error) };
    host.emit("task:ran", { taskId: id, occurrenceKey, attempt: row.starts, ...end });
    if (!outcome.ok) host.report(outcome.error, { stage: `task ${id}` });
    if (outcome.ok || move?.kind !== "next") return;
    host.emit("task:failed", { taskId: id, occurrenceKey, attempts: row.starts, error: errorText(outcome.error) });
    this.#hooks.failed(outcome.error);
  }
}

function occurrenceOf(agentId: string, task: CheckedTask, due: number): ScheduledTaskContext {
  const scheduledForDate = new Date(due);
  const occurrenceKey = `${task.id}:${scheduledForDate.toISOString()}`;
  return {
    taskId: task.id,
    scheduledFor: due,
    scheduledForDate,
    occurrenceKey,
    idempotencyKey: `${agentId}:${occurrenceKey}`,
    schedule: task.schedule,
    scheduleKind: task.plan.kind,
    timezone: task.timeZone ?? undefined,
    metadata: task.metadata,
  };
}

/** Refuses here what could not be stored: once there is a text to store, only a full disk may be in its way. */
function checkPrompt(id: string, text: unknown): string {
  const what = `The prompt of the scheduled task "${id}"`;
  if (typeof text !== "string" || text.trim() === "") {
    throw new PerdureError("bad_input", `${what} must return a non-empty string.`);
  }
  encodeJson(text, what);
  return text;
}

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
type TaskMove =
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
