import { PerdureError } from "../base/error.ts";
import type { RetryOptions } from "./retry.ts";
import type { WorkContext } from "./work.ts";
import { MAX_INTERRUPTIONS } from "./work.ts";

/** The counts of a row that was just started: that start is in `starts` already. */
export interface StartedRow {
  readonly callback: string;
  /** JSON of resolved retry options. */
  readonly retry: string;
  /** Tries that threw. */
  readonly attempts: number;
  /** Tries that began. Those that neither threw nor are under way were cut by the end of a process. */
  readonly starts: number;
}

/** For a row whose own cannot be read: what fails then is not tried again, and stays as failed. */
const ONE_TRY: Required<RetryOptions> = { maxAttempts: 1, baseDelayMs: 1_000, maxDelayMs: 1_000 };

/** Retry options as a row holds them: resolved and checked when it was written. */
export function parseRetry(json: string): Required<RetryOptions> {
  try {
    return JSON.parse(json) as Required<RetryOptions>;
  } catch {
    return ONE_TRY;
  }
}

/**
 * Calls the method that a row names.
 * @throws what the method throws; PerdureError `not_found` when there is none; `limit` when it was cut too often
 */
export function callMethod(context: WorkContext, row: StartedRow, payload: unknown, info: unknown): unknown {
  if (wasCutTooOften(row)) throw cutTooOften(row.callback);
  const method = context.method(row.callback);
  if (method === undefined) {
    throw new PerdureError("not_found", `There is no method "${row.callback}" on this agent any more.`);
  }
  return method(payload, info);
}

/** Whether, after the try under way has thrown, there may be another. */
export function mayTryAgain(row: StartedRow): boolean {
  return row.attempts + 1 < parseRetry(row.retry).maxAttempts && !wasCutTooOften(row);
}

/** Whether so many processes ended under it that it is to blame. */
export function wasCutTooOften(row: Pick<StartedRow, "attempts" | "starts">): boolean {
  return row.starts - row.attempts > MAX_INTERRUPTIONS;
}

/** What such work fails with. */
export function cutTooOften(what: string): PerdureError {
  return new PerdureError(
    "limit",
    `The process ended ${MAX_INTERRUPTIONS} times while "${what}" ran. It is not started again.`,
  );
}
