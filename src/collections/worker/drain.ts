import { PerdureError } from "../../base/error.ts";
import type { CheckpointContract } from "../contract.ts";
import { asError, nextDelay } from "../retry.ts";
import { pause } from "../../base/time.ts";

/** What `drainUntilIdle` needs to know. */
export interface DrainOptions {
  /** Whether there is work. Asked before each cycle and once more at the end. */
  hasPendingWork(): Promise<boolean>;
  /** Does some of it. What it throws is tried again, `maxFailures` times in a row at most. */
  runCycle(): Promise<void>;
  /** How many cycles at most. Default 50. */
  readonly maxIterations?: number;
  /** No cycle begins later than this. Default: no limit. */
  readonly maxDurationMs?: number;
  readonly lifecycle?: {
    heartbeat?(): Promise<void>;
    checkpoint?(checkpoints: CheckpointContract[]): Promise<void>;
  };
  /** How far sources were consumed, to be sent as a checkpoint. Called before each look for work. */
  buildCheckpoint?(): Promise<CheckpointContract[]>;
  /**
   * When to send a checkpoint. `idle` (default): once the next look finds nothing, so `buildCheckpoint` may say how far a log was
   * read. `cycle`: each time; it must then cover settled work only.
   */
  readonly checkpointAt?: "idle" | "cycle";
  /** How many cycles may fail one after the other before the drain fails. Default 3. */
  readonly maxFailures?: number;
  /** Wait after a first failure, doubled for each further one. Default 100 ms. */
  readonly retryDelayMs?: number;
  /** Begins no cycle any more when it aborts. */
  readonly signal?: AbortSignal;
}

const DEFAULT_ITERATIONS = 50;
const DEFAULT_FAILURES = 3;
const DEFAULT_RETRY_DELAY_MS = 100;

/**
 * Runs cycles while there is work.
 * @returns `completed` only if the last look found no work; false when a limit or a stop ended it.
 * @throws what `runCycle` threw after `maxFailures` failures in a row, or at once for PerdureError `fenced`. Such a wake is not
 *   done; its transport retries at its own pace, so bad work does not loop.
 */
export async function drainUntilIdle(options: DrainOptions): Promise<{ completed: boolean; cycles: number }> {
  const { lifecycle, signal } = options;
  const maxIterations = options.maxIterations ?? DEFAULT_ITERATIONS;
  const began = performance.now();
  const isOver = () =>
    signal?.aborted === true ||
    (options.maxDurationMs !== undefined && performance.now() - began >= options.maxDurationMs);
  let cycles = 0;
  let failures = 0;
  for (;;) {
    // Before the look: what arrives in between must not count as consumed.
    const checkpoints = (await options.buildCheckpoint?.()) ?? [];
    const isIdle = !(await options.hasPendingWork());
    if (checkpoints.length > 0 && (isIdle || options.checkpointAt === "cycle")) {
      await lifecycle?.checkpoint?.(checkpoints);
    }
    if (isIdle) return { completed: true, cycles };
    if (cycles >= maxIterations || isOver()) return { completed: false, cycles };
    cycles++;
    try {
      await options.runCycle();
      failures = 0;
    } catch (thrown) {
      const delay = delayBehind(asError(thrown), ++failures, options);
      if (delay === undefined) throw thrown;
      await pause(delay, signal);
    }
    await beat(lifecycle);
  }
}

/** The wait before the next cycle, or undefined when there is to be none. */
function delayBehind(error: Error, failures: number, options: DrainOptions): number | undefined {
  if (PerdureError.is(error, "fenced")) return undefined;
  const maxAttempts = options.maxFailures ?? DEFAULT_FAILURES;
  return nextDelay({ maxAttempts, delayMs: options.retryDelayMs ?? DEFAULT_RETRY_DELAY_MS }, failures, error);
}

/** A heartbeat that failed says nothing of the work; one that was refused does. */
async function beat(lifecycle: DrainOptions["lifecycle"]): Promise<void> {
  try {
    await lifecycle?.heartbeat?.();
  } catch (error) {
    if (PerdureError.is(error, "fenced")) throw error;
  }
}
