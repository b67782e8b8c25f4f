import { PerdureError } from "../base/error.ts";
import { namesOf, refuseUnknown } from "../base/known-options.ts";
import { backOff, type Clock, sleep } from "../base/time.ts";

/** How often, and how far apart, something that threw is tried again. */
export interface RetryOptions {
  /** Tries in all, with the first. 3 by default. */
  readonly maxAttempts?: number;
  /** The wait after the first try is a random time up to this; it doubles with each try. 100 by default. */
  readonly baseDelayMs?: number;
  /** No wait is longer. 3000 by default. */
  readonly maxDelayMs?: number;
}

export const DEFAULT_RETRY: Required<RetryOptions> = { maxAttempts: 3, baseDelayMs: 100, maxDelayMs: 3000 };

/** Fills in what is missing. @throws PerdureError `bad_config` when the result cannot work */
export function resolveRetry(
  options: RetryOptions | undefined,
  defaults: Required<RetryOptions> = DEFAULT_RETRY,
): Required<RetryOptions> {
  refuseUnknown(options, retryCallOptionsNames, "retry");
  if (options !== undefined && (typeof options !== "object" || options === null)) {
    throw new PerdureError("bad_config", "Retry options must be an object such as { maxAttempts: 3 }.");
  }
  const maxAttempts = options?.maxAttempts ?? defaults.maxAttempts;
  const baseDelayMs = options?.baseDelayMs ?? defaults.baseDelayMs;
  const maxDelayMs = options?.maxDelayMs ?? defaults.maxDelayMs;
  if (!Number.isSafeInteger(maxAttempts) || maxAttempts < 1) {
    throw new PerdureError(
      "bad_config",
      `retry.maxAttempts must be a whole number of at least 1, not ${String(maxAttempts)}.`,
    );
  }
  for (const [name, value] of Object.entries({ baseDelayMs, maxDelayMs })) {
    if (typeof value !== "number" || !Number.isFinite(value) || value < 0) {
      throw new PerdureError("bad_config", `retry.${name} must be a number of milliseconds, not ${String(value)}.`);
    }
  }
  if (baseDelayMs > maxDelayMs) {
    throw new PerdureError(
      "bad_config",
      `retry.baseDelayMs (${baseDelayMs}) is above retry.maxDelayMs (${maxDelayMs}). Raise the second or lower the first.`,
    );
  }
  return { maxAttempts, baseDelayMs, maxDelayMs };
}

/** The wait after `attempts` failed tries: random up to the doubled base, so that many do not come back together. */
export function backOffMs(
  attempts: number,
  retry: Pick<Required<RetryOptions>, "baseDelayMs" | "maxDelayMs">,
  random: () => number = Math.random,
): number {
  return Math.round(random() * backOff(attempts, retry.baseDelayMs, retry.maxDelayMs));
}

/** How `retry()` tries again. */
export interface RetryCallOptions extends RetryOptions {
  /** Asked after a throw, with the number of the next try. False ends it. If it throws, that error is thrown. */
  readonly shouldRetry?: (error: unknown, nextAttempt: number) => boolean;
  /** Ends the waiting: the call rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

const retryCallOptionsNames = namesOf<RetryCallOptions>()("shouldRetry signal maxAttempts baseDelayMs maxDelayMs");

/**
 * Calls `fn` until it does not throw. In memory only: nothing is stored.
 * @throws the last error, when tries are used up or `shouldRetry` says no; PerdureError `bad_config`
 */
export async function retry<T>(
  clock: Clock,
  fn: (attempt: number) => T | Promise<T>,
  options: RetryCallOptions = {},
  defaults: Required<RetryOptions> = DEFAULT_RETRY,
): Promise<T> {
  const policy = resolveRetry(options, defaults);
  for (let attempt = 1; ; attempt++) {
    options.signal?.throwIfAborted();
    try {
      return await fn(attempt);
    } catch (error) {
      if (attempt >= policy.maxAttempts) throw error;
      if (options.shouldRetry !== undefined && !options.shouldRetry(error, attempt + 1)) throw error;
    }
    await sleep(clock, backOffMs(attempt, policy), options.signal);
  }
}
