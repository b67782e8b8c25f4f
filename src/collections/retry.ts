/** When work that failed is tried again. */
export interface RetryPolicy {
  /** How often it is tried in all. Default 3. */
  readonly maxAttempts?: number;
  /** Wait before the second try; doubled for each further one. Default 500 ms. */
  readonly delayMs?: number;
  /** The longest wait. Default 30 s. */
  readonly maxDelayMs?: number;
  /** Whether this failure is worth another try. May not throw. Default: all are. */
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
  if (policy.retryable?.(error) === false) return undefined;
  const delay = (policy.delayMs ?? DEFAULT_DELAY_MS) * 2 ** (attempt - 1);
  return Math.min(delay, policy.maxDelayMs ?? DEFAULT_MAX_DELAY_MS);
}

/** Whatever was thrown, as an Error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
