import { PerdureError } from "../../base/error.ts";
import type { ToolCallContract } from "../contract.ts";
import { rowsOf, type RowCollection } from "../log/rows.ts";
import { startTimer } from "../../base/time.ts";
import { defaultResult, isSettled } from "./call-row.ts";

interface WaitOptions {
  /** In ms. Default: as long as it takes. */
  readonly timeout?: number;
  readonly signal?: AbortSignal;
}

/**
 * Waits until a row is over and gives its result. A row that is not there yet is waited for.
 * @param isComplete whether the call is over; may not throw. Default: `completed`, `failed` or `cancelled`.
 * @param getResult the result of such a row; what it throws is thrown here. Default: `result`, or an error with `error`.
 * @throws PerdureError `timeout`; `not_found` when the row was deleted meanwhile; `cancelled` when `signal` aborted.
 */
export async function waitForToolResult<TRow extends ToolCallContract, TResult = unknown>(
  collection: RowCollection<TRow>,
  id: string,
  isComplete: (row: TRow) => boolean = isSettled,
  // Without a function of its own the result is what the row holds, which only the caller can know.
  getResult: (row: TRow) => TResult | Promise<TResult> = (row) => defaultResult(row) as TResult,
  options: WaitOptions = {},
): Promise<TResult> {
  return getResult(await rowThat(collection, id, isComplete, options));
}

/** Resolves with the row as soon as `holds`; errors as {@link waitForToolResult}. */
async function rowThat<TRow extends ToolCallContract>(
  collection: RowCollection<TRow>,
  id: string,
  holds: (row: TRow) => boolean,
  { timeout, signal }: WaitOptions,
): Promise<TRow> {
  const rows = rowsOf(collection);
  let end = () => {};
  try {
    return await new Promise<TRow>((resolve, reject) => {
      let seen = false;
      const look = () => {
        const row = rows.get(id);
        if (row !== undefined) {
          seen = true;
          if (holds(row)) resolve(row);
        } else if (seen) {
          reject(new PerdureError("not_found", `The tool call "${id}" was deleted before it had a result.`));
        }
      };
      const aborted = () => reject(waitAborted(id, signal));
      const unsubscribe = rows.subscribe(look);
      const stopTimer = timeout === undefined ? () => {} : startTimer(timeout, () => reject(tookTooLong(id, timeout)));
      end = () => {
        unsubscribe();
        stopTimer();
        signal?.removeEventListener("abort", aborted);
      };
      if (signal?.aborted === true) return aborted();
      signal?.addEventListener("abort", aborted);
      // The first state of a collection may arrive without a change that would be told.
      rows.ready().then(look, reject);
      look();
    });
  } finally {
    end();
  }
}

/** The error of a wait that somebody ended. */
export function waitAborted(id: string, signal: AbortSignal | undefined): PerdureError {
  return new PerdureError("cancelled", `The wait for the tool call "${id}" was aborted.`, { cause: signal?.reason });
}

function tookTooLong(id: string, timeout: number): PerdureError {
  const text = `The tool call "${id}" had no result after ${timeout} ms. Is an executor for it running?`;
  return new PerdureError("timeout", text);
}
