import { PerdureError } from "../base/error.ts";
import { newId } from "../base/id.ts";
import type { NewSchedule, ScheduleRow, ScheduleType } from "../store/schedule.ts";
import { DEFAULT_TIME_ZONE, nextCronTime } from "./cron.ts";
import { encodeJson } from "../base/json.ts";

/** The last moment that a Date can hold. */
const MAX_TIME = 8.64e15;
const MS = 1000;

/** When to run: a delay in seconds, a moment, a cron expression, or every so many seconds. */
export type When = number | Date | string | { readonly everySeconds: number };

interface ScheduleRequest {
  readonly when: When;
  readonly callback: string;
  readonly payload: unknown;
  readonly timeZone?: string;
  /** JSON of resolved retry options. */
  readonly retry: string;
  readonly now: number;
}

/**
 * A row for what was asked, with its first time.
 * @throws PerdureError `bad_input` for a time, expression, zone or payload that cannot work
 */
export function toNewSchedule(request: ScheduleRequest): NewSchedule {
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
export function isRecurring(type: ScheduleType): boolean {
  return type === "cron" || type === "interval";
}

/**
 * The occurrence after the one that has just ended, always later than `now`: what was missed is not made up
 * for. Intervals keep their beat. Null when a cron expression holds no more.
 */
export function nextOccurrence(
  row: Pick<ScheduleRow, "type" | "spec" | "timeZone" | "due">,
  now: number,
): number | null {
  if (row.type === "cron") {
    // Never before the one that just ran, also if the clock was put back.
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
