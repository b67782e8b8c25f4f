import { errorText, PerdureError } from "../base/error.ts";
import type { DeliverTo } from "../store/delivery.ts";
import { type ArmedTask, armTask, changeTask, deleteTask, type TaskRow, taskTable } from "../store/task.ts";
import { type Outcome, runCallback } from "./callback.ts";
import { DueWork } from "./due-work.ts";
import { encodeJson, isRecord } from "../base/json.ts";
import { cutTooOften, wasCutTooOften } from "./method-work.ts";
import type { ScheduledTaskContext } from "./task-types.ts";
import type { WorkContext } from "./work.ts";
import { backOffMs, resolveRetry, type RetryOptions } from "./retry.ts";
import { ALLOWED_SCHEDULES, isTimeZone, occurrenceAfter, parseSchedule, type TaskPlan } from "./task-schedule.ts";

/** What tasks ask of the agent that declared them. */
export interface TaskHooks {
  /** Runs code of the user as the agent. Throws what it throws. */
  as<T>(work: () => T): T;
  /** Stores a turn that answers `prompt`, once per occurrence, in a transaction. If it throws, it is called again. */
  accept(prompt: string, occurrence: ScheduledTaskContext, deliverTo: DeliverTo | undefined): void;
  /** An occurrence was given up. Must not throw. */
  failed(error: unknown): void;
}

/**
 * The tasks that an agent declared, a row each: the occurrence it waits for, run late if the host was down. Then the next one in
 * the future is armed, whatever became of it. A task never overlaps itself.
 */
export class Tasks extends DueWork<string> {
  readonly #hooks: TaskHooks;
  #tasks: ReadonlyMap<string, CheckedTask> = new Map();

  constructor(context: WorkContext, hooks: TaskHooks) {
    super(context);
    this.#hooks = hooks;
  }

  /** Takes over the declared tasks, in one commit: arms new and changed ones, leaves the others, and deletes rows of none. */
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

/** Brings rows to what is declared. An unchanged task keeps its next time and its tries. @returns only what must change */
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
      // What has run does not run again, even if the clock was put back since.
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
 * Decides after a run that ended, with `error` or without. Missed occurrences are not made up for: the next is later than now and
 * than this one, whatever the clock says. @param mayRetry false: it was cut too often to be tried again
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

/** A task that can work. */
export interface CheckedTask {
  readonly id: string;
  /** As it was declared. */
  readonly schedule: string;
  readonly plan: TaskPlan;
  /** Null for an interval. */
  readonly timeZone: string | null;
  readonly retry: Required<RetryOptions>;
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
  readonly action:
    | { readonly kind: "prompt"; text(): unknown; readonly deliverTo: DeliverTo | undefined }
    | { readonly kind: "handler"; call(context: ScheduledTaskContext): unknown };
}

/** What holds for tasks that do not say it themselves. */
interface TaskDefaults {
  /** Asked only when a task needs it. May throw. */
  timeZone(): unknown;
  readonly retry: Required<RetryOptions>;
}

const SETTINGS: readonly string[] = ["schedule", "timezone", "prompt", "handler", "retry", "metadata", "deliverTo"];
const MAX_TASK_ID_LENGTH = 256;
const MAX_TASKS = 1000;

/** Checks everything that was declared before any of it is used. @throws PerdureError `bad_config` that names the task */
export function checkTasks(declared: unknown, defaults: TaskDefaults): Map<string, CheckedTask> {
  if (!isRecord(declared)) {
    throw new PerdureError(
      "bad_config",
      `getScheduledTasks() must return an object of tasks, not ${kindOf(declared)}.`,
    );
  }
  const entries = Object.entries(declared);
  if (entries.length > MAX_TASKS) {
    throw new PerdureError(
      "bad_config",
      `getScheduledTasks() returned ${entries.length} tasks. The limit is ${MAX_TASKS}: let one task do several things.`,
    );
  }
  return new Map(entries.map(([id, task]) => [id, checkTask(id, task, defaults)]));
}

function checkTask(id: string, task: unknown, defaults: TaskDefaults): CheckedTask {
  const refuse = (why: string): never => {
    throw new PerdureError("bad_config", `Scheduled task "${id}": ${why}.`);
  };
  if (id === "" || id.length > MAX_TASK_ID_LENGTH || !id.isWellFormed())
    return refuse(`its id must be text of 1 to ${MAX_TASK_ID_LENGTH} characters`);
  if (!isRecord(task)) return refuse(`it must be an object with a schedule, not ${kindOf(task)}`);
  const unknown = Object.keys(task).find((key) => !SETTINGS.includes(key));
  if (unknown !== undefined) return refuse(`it has no setting "${unknown}". There are ${SETTINGS.join(", ")}`);
  const { schedule, metadata } = task;
  if (typeof schedule !== "string") return refuse(`its schedule must be a string, not ${kindOf(schedule)}`);
  const plan = parseSchedule(schedule);
  if (typeof plan === "string")
    return refuse(`the schedule "${schedule}" is not understood: ${plan}. ${ALLOWED_SCHEDULES}`);
  if (metadata !== undefined && !isRecord(metadata))
    return refuse(`its metadata must be an object, not ${kindOf(metadata)}`);
  try {
    encodeJson(metadata, "its metadata");
    // Checked there.
    const retry = resolveRetry(task.retry as RetryOptions | undefined, defaults.retry);
    const timeZone = zoneOf(plan, task.timezone, defaults);
    return { id, schedule, plan, timeZone, retry, metadata, action: actionOf(task) };
  } catch (thrown) {
    return refuse(errorText(thrown).replace(/\.$/, ""));
  }
}

function zoneOf(plan: TaskPlan, own: unknown, defaults: TaskDefaults): string | null {
  if (plan.kind === "interval") {
    if (own === undefined) return null;
    throw new Error("an interval has no time zone. Leave `timezone` out");
  }
  if (plan.zone !== undefined && own !== undefined && own !== plan.zone) {
    throw new Error(`its schedule names the zone "${plan.zone}", and \`timezone\` another. Keep one of them`);
  }
  const zone = plan.zone ?? own ?? defaults.timeZone();
  if (zone === undefined || zone === null) {
    throw new Error(
      'a time of day needs a time zone. End the schedule with " in <Area/City>", set `timezone`, or override getDefaultTimezone()',
    );
  }
  if (typeof zone === "string" && isTimeZone(zone)) return zone;
  const from = plan.zone === undefined && own === undefined ? " (of getDefaultTimezone())" : "";
  throw new Error(
    `${typeof zone === "string" ? `"${zone}"` : kindOf(zone)}${from} is not a time zone. Use a name such as "Europe/London"`,
  );
}

function actionOf(task: Record<string, unknown>): CheckedTask["action"] {
  const { prompt, handler } = task;
  if ((prompt === undefined) === (handler === undefined)) {
    throw new Error(`it needs either a prompt or a handler, and has ${prompt === undefined ? "neither" : "both"}`);
  }
  if (handler !== undefined && task.deliverTo !== undefined) throw new Error("only a prompt has an answer to deliver");
  if (typeof handler === "function")
    return { kind: "handler", call: (context) => Reflect.apply(handler, task, [context]) as unknown };
  if (handler !== undefined) throw new Error(`its handler must be a function, not ${kindOf(handler)}`);
  const deliverTo = placeOf(task.deliverTo);
  if (typeof prompt === "function")
    return { kind: "prompt", text: () => Reflect.apply(prompt, task, []) as unknown, deliverTo };
  if (typeof prompt !== "string") throw new Error(`its prompt must be a string or a function, not ${kindOf(prompt)}`);
  if (prompt.trim() === "") throw new Error("its prompt is empty");
  return { kind: "prompt", text: () => prompt, deliverTo };
}

function placeOf(given: unknown): DeliverTo | undefined {
  if (given === undefined) return undefined;
  if (!isRecord(given) || typeof given.channel !== "string" || typeof given.thread !== "string")
    throw new Error("its `deliverTo` must be { channel, thread }");
  const { channel, thread, dm } = given;
  return { channel, thread, ...(typeof dm === "boolean" && { dm }) };
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return Array.isArray(value) ? "an array" : `a ${typeof value}`;
}
