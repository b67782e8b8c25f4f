import { namesOf, refuseUnknown } from "../base/known-options.ts";
import { readStored } from "../store/damaged.ts";
import {
  countWaiting,
  deleteSchedule,
  findSameSchedule,
  insertSchedule,
  listSchedules,
  type NewSchedule,
  type ScheduleRow,
  type ScheduleStatus,
  scheduleTable,
  type ScheduleType,
} from "../store/schedule.ts";
import { MethodWork, parseRetry } from "./method-work.ts";
import type { WorkContext } from "./work.ts";
import { PerdureError } from "../base/error.ts";
import { newId } from "../base/id.ts";
import { DEFAULT_TIME_ZONE, nextCronTime } from "./cron.ts";
import { decodeJson, encodeJson } from "../base/json.ts";
import type { RetryOptions } from "./retry.ts";

/** From how many waiting rows of one callback on it looks as if they pile up by mistake. */
const DUPLICATE_WARNING = 50;

const scheduleOptionsNames = namesOf<ScheduleOptions>()("retry idempotent timeZone");

/**
 * Calls of methods at a time, found by `due-work.ts` and run by `method-work.ts`. All is in rows, so the next life carries on.
 * Each occurrence runs once, late if the host was down; missed ones are not made up for. A recurring one never overlaps itself:
 * its next time is found when its run settles. A one-shot out of tries stays as `failed`; of a recurring one only the occurrence
 * fails, and `error` says why.
 */
export class Schedules extends MethodWork<ScheduleRow> {
  readonly #warned = new Set<string>();

  constructor(context: WorkContext) {
    super(context, "schedule", scheduleTable);
  }

  /** Stores a schedule; committed when this returns. @throws PerdureError `bad_input`, `bad_config`, `not_found`, `limit` */
  add<T = unknown>(when: When, callback: string, payload?: T, options: ScheduleOptions = {}): Schedule<T> {
    refuseUnknown(options, scheduleOptionsNames, "schedule()");
    const { host } = this.context;
    const retry = this.accept(callback, options.retry);
    const row = toNewSchedule({ when, callback, payload, timeZone: options.timeZone, retry, now: host.clock.now() });
    const recurring = isRecurring(row.type);
    if (options.idempotent ?? recurring) {
      // A one-shot that runs now may plan its successor; a recurring one that runs now will go on by itself.
      const same = findSameSchedule(host, row, recurring, recurring ? ["pending", "running"] : ["pending"]);
      if (same !== undefined) return toSchedule<T>(same);
    }
    const inserted = insertSchedule(host, { ...row, cause: this.context.cause() });
    host.emit("schedule:created", { id: row.id, callback });
    this.#warnOfDuplicates(callback);
    this.changed();
    return toSchedule<T>(inserted);
  }

  /** {@link Schedules.add}, and resolves once the schedule survives. */
  async schedule<T = unknown>(
    when: number | Date | string,
    callback: string,
    payload?: T,
    options?: ScheduleOptions,
  ): Promise<Schedule<T>> {
    const schedule = this.add(when, callback, payload, options);
    await this.context.host.durable();
    return schedule;
  }

  /** Every `seconds`, the first time after one interval. Resolves once the schedule survives. */
  async scheduleEvery<T = unknown>(
    seconds: number,
    callback: string,
    payload?: T,
    options?: Omit<ScheduleOptions, "timeZone">,
  ): Promise<Schedule<T>> {
    const schedule = this.add({ everySeconds: seconds }, callback, payload, options);
    await this.context.host.durable();
    return schedule;
  }

  getScheduleById(id: string): Schedule | undefined {
    const row = scheduleTable.find(this.context.host, "id", id);
    return row === undefined ? undefined : this.#shown(row);
  }

  /** Matching schedules in the order of their next run. */
  listSchedules(criteria: ScheduleCriteria = {}): Schedule[] {
    const { timeRange, ...rest } = criteria;
    const filter = { ...rest, from: timeRange?.start?.getTime(), to: timeRange?.end?.getTime() };
    return listSchedules(this.context.host, filter).map((row) => this.#shown(row));
  }

  #shown(row: ScheduleRow): Schedule {
    return toSchedule(row, (json) => readStored(this.context.host, json, `the payload of the schedule ${row.id}`));
  }

  /** Removes a schedule; committed when this returns. A run under way finishes, but never runs again. */
  remove(id: string): boolean {
    this.adopt();
    const callback = deleteSchedule(this.context.host, id);
    if (callback === undefined) return false;
    this.context.host.emit("schedule:cancelled", { id, callback });
    this.changed();
    return true;
  }

  /** {@link Schedules.remove}, and resolves once that survives. False when there is none. */
  async cancelSchedule(id: string): Promise<boolean> {
    const removed = this.remove(id);
    await this.context.host.durable();
    return removed;
  }

  protected toRun(row: ScheduleRow): ScheduleRun {
    return { ...toSchedule(row), occurrence: `${row.id}:${row.due}`, attempt: row.starts };
  }

  protected afterLast(row: ScheduleRow, _error: string | null, now: number): Partial<ScheduleRow> | undefined {
    const due = isRecurring(row.type) ? nextOccurrence(row, now) : null;
    return due === null ? undefined : { due, at: due };
  }

  /** Once per callback and life; a warning per row would be a second flood. */
  #warnOfDuplicates(callback: string): void {
    const { host } = this.context;
    if (this.#warned.has(callback) || countWaiting(host, callback, DUPLICATE_WARNING) < DUPLICATE_WARNING) return;
    this.#warned.add(callback);
    host.emit("schedule:duplicate_warning", { callback, count: countWaiting(host, callback, -1) });
  }
}

/** The last moment that a Date can hold. */
const MAX_TIME = 8.64e15;
const MS = 1000;

/** When to run: a delay in seconds, a moment, a cron expression, or every so many seconds. */
type When = number | Date | string | { readonly everySeconds: number };

interface ScheduleRequest {
  readonly when: When;
  readonly callback: string;
  readonly payload: unknown;
  readonly timeZone?: string;
  /** JSON of resolved retry options. */
  readonly retry: string;
  readonly now: number;
}

/** A row for what was asked, with its first time. @throws PerdureError `bad_input` for what cannot work */
function toNewSchedule(request: ScheduleRequest): NewSchedule {
  const { callback, now } = request;
  const { type, spec, due, timeZone } = firstTime(request.when, request.timeZone, now);
  const payload = encodeJson(request.payload, `The payload for "${callback}"`);
  const parts = [type, callback, isRecurring(type) ? spec : "", timeZone ?? "", payload ?? ""];
  return {
    id: newId(),
    type,
    callback,
    payload,
    spec,
    timeZone,
    fingerprint: fingerprint(parts.join("\u0000")),
    retry: request.retry,
    due,
    createdAt: now,
  };
}

/** Whether a schedule of this type runs again after it has run. */
function isRecurring(type: ScheduleType): boolean {
  return type === "cron" || type === "interval";
}

/** The occurrence after the last one, later than `now`: missed ones are skipped. Null when a cron expression has no more. */
function nextOccurrence(row: Pick<ScheduleRow, "type" | "spec" | "timeZone" | "due">, now: number): number | null {
  if (row.type === "cron") {
    // Never before the one that just ran, even if the clock was put back.
    return nextCronTime(row.spec, row.timeZone ?? DEFAULT_TIME_ZONE, Math.max(now, row.due));
  }
  const step = intervalMs(Number(row.spec));
  const steps = Math.max(1, Math.floor((now - row.due) / step) + 1);
  return row.due + steps * step;
}

interface FirstTime {
  readonly type: ScheduleType;
  readonly spec: string;
  readonly due: number;
  readonly timeZone: string | null;
}

function firstTime(when: When, timeZone: string | undefined, now: number): FirstTime {
  if (typeof when === "string") {
    const zone = timeZone ?? DEFAULT_TIME_ZONE;
    const due = nextCronTime(when, zone, now);
    if (due === null) throw new PerdureError("bad_input", `Cron "${when}" never occurs.`);
    return { type: "cron", spec: when.trim().replace(/\s+/g, " "), due, timeZone: zone };
  }
  if (timeZone !== undefined) {
    throw new PerdureError("bad_input", "A time zone needs a cron expression.");
  }
  if (typeof when === "number") {
    checkSeconds("A delay", when, now);
    return { type: "delayed", spec: String(when), due: now + Math.ceil(when * MS), timeZone: null };
  }
  if (when instanceof Date) {
    const due = when.getTime();
    if (Number.isNaN(due)) throw new PerdureError("bad_input", "The Date to schedule at is not a valid date.");
    return { type: "scheduled", spec: String(due), due, timeZone: null };
  }
  if (typeof when !== "object" || when === null || !("everySeconds" in when)) {
    throw new PerdureError("bad_input", "Schedule with a number of seconds, a Date or a cron expression.");
  }
  checkSeconds("An interval", when.everySeconds, now);
  if (when.everySeconds === 0) throw new PerdureError("bad_input", "An interval must be longer than 0 seconds.");
  return {
    type: "interval",
    spec: String(when.everySeconds),
    due: now + intervalMs(when.everySeconds),
    timeZone: null,
  };
}

function intervalMs(seconds: number): number {
  return Math.max(1, Math.round(seconds * MS));
}

function checkSeconds(what: string, seconds: number, now: number): void {
  if (typeof seconds !== "number" || !Number.isFinite(seconds) || seconds < 0 || now + seconds * MS > MAX_TIME) {
    throw new PerdureError("bad_input", `${what} must be a number of seconds of at least 0, not ${String(seconds)}.`);
  }
}

const FNV_START = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** A number that finds equal text by index (FNV-1a). Different text may share it. */
function fingerprint(text: string): number {
  let hash = FNV_START;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), FNV_PRIME);
  return hash >>> 0;
}

/** One schedule as users see it. */
export type Schedule<T = unknown> = {
  readonly id: string;
  /** The method that it calls. */
  readonly callback: string;
  readonly payload: T;
  readonly retry: Required<RetryOptions>;
  readonly status: ScheduleStatus;
  /** When it runs next, in whole seconds since the epoch. */
  readonly time: number;
  /** The same in milliseconds. */
  readonly at: number;
  /** Why the last try, or the last occurrence of a recurring one, failed. */
  readonly error?: string;
  /** When it, or the last failed occurrence of a recurring one, was given up. Milliseconds since the epoch. */
  readonly failedAt?: number;
} & (
  | { readonly type: "scheduled" }
  | { readonly type: "delayed"; readonly delayInSeconds: number }
  | { readonly type: "cron"; readonly cron: string; readonly timeZone: string }
  | { readonly type: "interval"; readonly intervalSeconds: number }
);

/** What a callback gets beside its payload. */
export type ScheduleRun<T = unknown> = Schedule<T> & {
  /** The same for every try of one occurrence, different for the next: a key to make effects idempotent with. */
  readonly occurrence: string;
  /** From 1; counts tries that threw and tries that the end of a process cut. */
  readonly attempt: number;
};

/** How a schedule is added and run. */
export interface ScheduleOptions {
  readonly retry?: RetryOptions;
  /** Return the schedule that is already there for the same work. On for cron and intervals, off otherwise. */
  readonly idempotent?: boolean;
  /** An IANA name for a cron expression, such as "Europe/Berlin". UTC by default. */
  readonly timeZone?: string;
}

/** Which schedules to list; what is left out does not matter. */
export interface ScheduleCriteria {
  readonly id?: string;
  readonly type?: ScheduleType;
  readonly callback?: string;
  readonly status?: ScheduleStatus;
  /** By the time of the next run, both ends included. */
  readonly timeRange?: { readonly start?: Date; readonly end?: Date };
  readonly limit?: number;
}

/** The row as users see it, with what it holds. @param read may give undefined for a payload that cannot be read, rather than throw. */
function toSchedule<T = unknown>(row: ScheduleRow, read = decodeJson): Schedule<T> {
  const common = {
    id: row.id,
    callback: row.callback,
    // What users put in under `T` is what comes out; JSON is between the two.
    payload: read(row.payload) as T,
    retry: parseRetry(row.retry),
    status: row.status,
    time: Math.floor(row.at / 1000),
    at: row.at,
    error: row.error ?? undefined,
    failedAt: row.failedAt ?? undefined,
  };
  switch (row.type) {
    case "scheduled":
      return { ...common, type: row.type };
    case "delayed":
      return { ...common, type: row.type, delayInSeconds: Number(row.spec) };
    case "cron":
      return { ...common, type: row.type, cron: row.spec, timeZone: row.timeZone ?? DEFAULT_TIME_ZONE };
    case "interval":
      return { ...common, type: row.type, intervalSeconds: Number(row.spec) };
  }
}
