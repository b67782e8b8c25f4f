import type { ScheduleRow, ScheduleStatus, ScheduleType } from "../store/schedule.ts";
import { parseRetry } from "./method-work.ts";
import { DEFAULT_TIME_ZONE } from "./cron.ts";
import { decodeJson } from "../base/json.ts";
import type { RetryOptions } from "./retry.ts";

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
export function toSchedule<T = unknown>(row: ScheduleRow, read = decodeJson): Schedule<T> {
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
