import { errorText } from "../../base/error.ts";
import type { GenerationContract } from "../contract.ts";
import type { RowLog } from "../log/row-log.ts";
import type { RowCondition } from "../../wire/row-frames.ts";
import type { Rows } from "../log/rows.ts";
import type { Claims } from "../worker/claim.ts";
import type { RetryPolicy } from "../retry.ts";
import { isSettled, touch, type CallRow } from "./call-row.ts";
import type { LateResults, ToolExecutionCallbacks, ToolLike, ToolRun } from "./types.ts";

interface ParentWatch<TRow extends object> {
  /** Whether the call's answer was cancelled, so that nobody waits for its result. */
  isCancelled(item: CallItem<TRow>): Promise<boolean>;
  /** What must hold for a result to be stored: that the answer was not cancelled since it was looked at. */
  conditions(item: CallItem<TRow>): RowCondition[];
  /** Calls `cancelled` when the answer is. Returns its end. */
  follow(item: CallItem<TRow>, cancelled: () => void): () => void;
}

/** Watches answers in a collection, by a function, or not at all. */
export function parentWatch<TRow extends object>(
  generations: Rows<GenerationContract> | undefined,
  isCancelled: ((row: TRow) => boolean | Promise<boolean>) | undefined,
  log: RowLog | undefined,
): ParentWatch<TRow> {
  const gone = ({ call: { generationId: id } }: CallItem<TRow>) =>
    id !== undefined && generations?.get(id)?.status === "cancelled";
  return {
    isCancelled: async (item) => gone(item) || (await isCancelled?.(item.row)) === true,
    conditions({ call: { generationId: id } }) {
      // A condition is judged in one log only.
      if (id === undefined || generations === undefined || generations.log !== log) return [];
      const condition = generations.unchanged(id);
      return condition === undefined ? [] : [condition];
    },
    follow(item, cancelled) {
      if (generations === undefined) return () => {};
      const look = () => {
        if (gone(item)) cancelled();
      };
      look();
      return generations.subscribe(look);
    },
  };
}

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

/** Where callbacks write but none covers this end, the effect must: whoever waits for the call would wait forever. */
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
