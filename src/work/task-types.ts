import type { DeliverTo } from "../store/delivery.ts";
import type { RetryOptions } from "./retry.ts";

// The compiler checks what it can without unions of many thousands. What it lets pass is refused when the agent starts.
type Digit = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9;
type Hour = `0${Digit}` | `1${Digit}` | `2${0 | 1 | 2 | 3}`;
type Time = `${Hour}:${0 | 1 | 2 | 3 | 4 | 5}${number}`;
type Weekday = "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday";
type AndMore = "" | `,${string}`;

/** Again and again after the same time, counted from when the task was first seen. */
export type IntervalSchedule =
  | "every minute"
  | "every hour"
  | `every ${number} minute${"" | "s"}`
  | `every ${number} hour${"" | "s"}`;

/** When the clocks of a time zone show a time. `weekday` is Monday to Friday. */
export type WallClockSchedule =
  | `every ${"day" | "weekday" | `week on ${Weekday}`} at ${Time}`
  | `every week on ${Weekday},${Weekday} at ${Hour}:${number}`
  | `every week on ${Weekday},${Weekday},${Weekday}${AndMore} at ${string}:${number}`;

/** When a task runs. */
export type TaskSchedule = IntervalSchedule | WallClockSchedule | `${WallClockSchedule} in ${string}`;

/** What a handler is told. The same for every try of one occurrence, whichever process makes it. */
export interface ScheduledTaskContext {
  readonly taskId: string;
  /** The time that was meant, in milliseconds since the epoch. It may be long ago if the host was down. */
  readonly scheduledFor: number;
  readonly scheduledForDate: Date;
  /** Names this occurrence within the agent. */
  readonly occurrenceKey: string;
  /** Names this occurrence among all agents: for systems that take such a key. */
  readonly idempotencyKey: string;
  /** As it was declared. */
  readonly schedule: string;
  readonly scheduleKind: "interval" | "wall-clock";
  /** The zone of a wall clock schedule. */
  readonly timezone: string | undefined;
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

interface TaskSettings {
  readonly schedule: TaskSchedule;
  /** The zone of a wall clock schedule that names none. Default: what `getDefaultTimezone()` returns. */
  readonly timezone?: string;
  /** Tries of one occurrence. Default: as the agent's other work. */
  readonly retry?: RetryOptions;
  /** JSON for whoever sees the occurrence: the handler, or a reader of the submission. */
  readonly metadata?: Readonly<Record<string, unknown>>;
}

interface PromptTask extends TaskSettings {
  /** What the user would have said. Each occurrence is one turn that answers it. A function is asked every time. */
  readonly prompt: string | (() => string | Promise<string>);
  /** Where the answer is delivered. Default: to the place that the conversation belongs to, if it belongs to one. */
  readonly deliverTo?: DeliverTo;
  readonly handler?: never;
}

interface HandlerTask extends TaskSettings {
  /** Called at least once per occurrence; a plain return takes effect once, with its record. May be slow; a throw is retried. */
  readonly handler: (context: ScheduledTaskContext) => unknown;
  readonly prompt?: never;
  readonly deliverTo?: never;
}

/** Something that comes again and again: a prompt or a handler, and when. */
export type ScheduledTask = PromptTask | HandlerTask;

/** Tasks by their ids. An id stands for the same task in every version of the code. */
export type ScheduledTasks = Readonly<Record<string, ScheduledTask>>;

/** Returns what it is given. It lets the compiler check schedules where the return type is not written down. */
export function defineScheduledTasks<const Tasks extends ScheduledTasks>(tasks: Tasks): Tasks {
  return tasks;
}
