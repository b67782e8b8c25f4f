import { PerdureError } from "../base/error.ts";
import { pause, backOff } from "../base/time.ts";

/** When work that failed is tried again. */
export interface RetryPolicy {
  /** How often it is tried in all. Default 3. */
  readonly maxAttempts?: number;
  /** Wait before the second try; doubled for each further one. Default 500 ms. */
  readonly delayMs?: number;
  /** The longest wait. Default 30 s. */
  readonly maxDelayMs?: number;
  /** Whether this failure is worth another try. What it throws counts as no. Default: all are. */
  readonly retryable?: (error: Error) => boolean;
}

const DEFAULT_ATTEMPTS = 3;
const DEFAULT_DELAY_MS = 500;
const DEFAULT_MAX_DELAY_MS = 30_000;

/** How often work is tried in all. */
export function maxAttemptsOf(policy: RetryPolicy): number {
  return policy.maxAttempts ?? DEFAULT_ATTEMPTS;
}

/** The wait before the next try after `attempt` tries, or undefined when it was the last. */
export function nextDelay(policy: RetryPolicy, attempt: number, error: Error): number | undefined {
  if (attempt >= maxAttemptsOf(policy)) return undefined;
  if (!isWorthwhile(policy, error)) return undefined;
  return backOff(attempt, policy.delayMs ?? DEFAULT_DELAY_MS, policy.maxDelayMs ?? DEFAULT_MAX_DELAY_MS);
}

function isWorthwhile(policy: RetryPolicy, error: Error): boolean {
  try {
    return policy.retryable?.(error) !== false;
  } catch {
    return false;
  }
}

/** For what cannot be reached: tried again for as long as there is something to do. */
export const UNREACHED: RetryPolicy = { maxAttempts: Number.POSITIVE_INFINITY, delayMs: 200, maxDelayMs: 30_000 };

/** Calls a listener of the app. What it throws or rejects with goes to the console: it must not end the loop that tells. */
export function notify(listener: () => unknown): void {
  const failed = (failure: unknown) => console.error("A function that was told of something has thrown:", failure);
  try {
    const told = listener();
    if (told instanceof Promise) told.catch(failed);
  } catch (failure) {
    failed(failure);
  }
}

/** The function that an app gave to be told of errors, by default the console, called by {@link notify}. */
export function reporter<TError, TMore extends unknown[]>(
  tell: ((error: TError, ...more: TMore) => unknown) | undefined,
): (error: TError, ...more: TMore) => void {
  return (error, ...more) => notify(() => (tell === undefined ? console.error(error) : tell(error, ...more)));
}

/** Whatever was thrown, as an Error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** How often the outcome of a call is written again before it is left to recovery: minutes, not for ever. */
const WRITES = { maxAttempts: 20, delayMs: 200, maxDelayMs: 30_000 };

const UNWRITABLE: ReadonlySet<string> = new Set(["too_large", "bad_input", "limit"]);

/**
 * Repeats a write until it goes through. `report` is told of each failure.
 * @returns undefined when it gave up: after many tries, at `disposing`, when fenced, or when the log will never take such a row.
 */
export async function persist<T>(
  write: () => Promise<T>,
  disposing: AbortSignal,
  report: (error: Error) => void,
): Promise<T | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await write();
    } catch (thrown) {
      const error = asError(thrown);
      report(error);
      const delay = nextDelay(WRITES, attempt, error);
      if (delay === undefined || disposing.aborted || isFinal(error)) return undefined;
      await pause(delay, disposing);
    }
  }
}

/** Another try would come to the same. */
function isFinal(error: Error): boolean {
  return PerdureError.is(error, "fenced") || isUnwritable(error);
}

/** Whether a log, or the schema of a collection, refuses a row for what it is, and will do so each time. */
export function isUnwritable(error: unknown): error is PerdureError {
  return PerdureError.is(error) && UNWRITABLE.has(error.code);
}
