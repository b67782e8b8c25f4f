import { errorText, PerdureError } from "../base/error.ts";
import { encodeJson, isRecord } from "../base/json.ts";
import type { DeliverTo } from "../store/delivery.ts";
import { resolveRetry, type RetryOptions } from "./retry.ts";
import { ALLOWED_SCHEDULES, parseSchedule, type TaskPlan } from "./task-schedule.ts";
import type { ScheduledTaskContext } from "./task-types.ts";
import { isTimeZone } from "./wall-time.ts";

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

/**
 * Checks everything that was declared before anything of it is used.
 * @throws PerdureError `bad_config` that names the task, what is wrong with it and what is allowed
 */
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
