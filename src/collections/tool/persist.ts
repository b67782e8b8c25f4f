import { PerdureError } from "../../base/error.ts";
import { asError, nextDelay } from "../retry.ts";
import { pause } from "../timer.ts";

/** How often the outcome of a call is written again before it is left to recovery: minutes, not for ever. */
const WRITES = { maxAttempts: 20, delayMs: 200, maxDelayMs: 30_000 };

const UNWRITABLE: ReadonlySet<string> = new Set(["too_large", "bad_input", "limit"]);

/**
 * Repeats a write until it has gone through. `report` is told of each failure.
 * @returns undefined when it was given up: after many tries, at `disposing`, or because the writer was shut out, or
 *   because the log will never take such a row.
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
