import { PerdureError } from "../../base/error.ts";
import type { ToolCallContract } from "../contract.ts";
import { rowsOf, type RowCollection } from "../log/rows.ts";
import { waitUntil } from "../wait-until.ts";
import { defaultResult, isSettled } from "./call-row.ts";

interface WaitOptions {
  /** In ms. Default: as long as it takes. */
  readonly timeout?: number;
  readonly signal?: AbortSignal;
}

/**
 * Waits until a row is over and returns its result; waits for a row that does not exist yet, too.
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
  const rows = rowsOf(collection);
  const { signal, timeout } = options;
  let seen = false;
  const row = await waitUntil(
    (again, fail) => {
      // The first state of a collection may arrive without a change that would be told.
      rows.ready().then(again, fail);
      return rows.subscribe(again);
    },
    () => {
      const found = rows.get(id);
      if (found === undefined && seen) throw deleted(id);
      seen = found !== undefined;
      return found !== undefined && isComplete(found) ? found : undefined;
    },
    { signal, timeout, aborted: () => waitAborted(id, signal), late: () => tookTooLong(id, timeout) },
  );
  return getResult(row);
}

function deleted(id: string): PerdureError {
  return new PerdureError("not_found", `The tool call "${id}" was deleted before it had a result.`);
}

/** The error of a wait that somebody ended. */
export function waitAborted(id: string, signal: AbortSignal | undefined): PerdureError {
  return new PerdureError("cancelled", `The wait for the tool call "${id}" was aborted.`, { cause: signal?.reason });
}

function tookTooLong(id: string, timeout: number | undefined): PerdureError {
  const text = `The tool call "${id}" had no result after ${timeout} ms. Is an executor for it running?`;
  return new PerdureError("timeout", text);
}
