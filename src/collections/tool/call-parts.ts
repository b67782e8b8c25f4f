import { errorText } from "../../base/error.ts";
import type { Claims } from "../claim/claim.ts";
import type { RetryPolicy } from "../retry.ts";
import type { Rows } from "../rows.ts";
import type { LateResults, ToolExecutionCallbacks } from "./execution-options.ts";
import type { ParentWatch } from "./parent-watch.ts";
import { isSettled, touch } from "./tool-row.ts";
import type { CallRow } from "./tool-row.ts";
import type { ToolLike, ToolRun } from "./tool-types.ts";

/** An executor's options as its parts use them: the types of the single tools are checked at the door. */
export interface CallParts<TRow extends object> {
  readonly tools: ReadonlyMap<string, ToolLike>;
  readonly implementations: { readonly [name: string]: (args: unknown, run: ToolRun<TRow>) => unknown };
  /** Undefined: callbacks write. */
  readonly writer: Rows<CallRow> | undefined;
  readonly reader: Rows<CallRow> | undefined;
  readonly claims: Claims | undefined;
  readonly parent: ParentWatch<TRow>;
  readonly lateResults: LateResults<TRow, unknown>;
  readonly retry: RetryPolicy | undefined;
  readonly callbacks: ToolExecutionCallbacks<TRow, unknown>;
  /** Tells somebody; must not throw. */
  report(error: unknown, row?: TRow): void;
}

/** A row that is to be executed. */
export interface CallItem<TRow extends object> {
  /** Names one execution: the row's id and how often it was begun before. */
  readonly key: string;
  readonly id: string;
  /** As the query gives it: for callbacks. */
  readonly row: TRow;
  /** The call in it; of a query that joins, the row of its first collection. */
  readonly call: CallRow;
  readonly attempt: number;
}

/**
 * Where callbacks write and there is none for this end, somebody has to: whoever waits for the call would wait for ever.
 */
export async function settleUntold<TRow extends object>(
  { reader }: CallParts<TRow>,
  id: string,
  status: "failed" | "cancelled",
  error?: Error,
): Promise<void> {
  await reader?.update(id, (draft) => {
    if (isSettled(draft)) return false;
    draft.status = status;
    if (error !== undefined) draft.error = errorText(error);
    touch(draft);
    return true;
  });
}

/** Tells a callback what is already written; what it throws is only reported. */
export async function tell<TRow extends object>(
  parts: CallParts<TRow>,
  row: TRow,
  callback: () => void | Promise<void> | undefined,
): Promise<void> {
  try {
    await callback();
  } catch (error) {
    parts.report(error, row);
  }
}
