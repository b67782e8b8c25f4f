import type { GenerationContract } from "../contract.ts";
import type { RowCondition, RowLog } from "../log/row-log.ts";
import type { Rows } from "../rows.ts";
import type { CallRow } from "./tool-row.ts";

/** What is known of the answers that calls belong to. */
export interface ParentWatch<TRow> {
  /** Whether the call's answer was cancelled, so that nobody waits for its result. */
  isCancelled(row: TRow): Promise<boolean>;
  /** What must hold for a result to be stored: that the answer was not cancelled since it was looked at. */
  conditions(row: TRow): RowCondition[];
  /** Calls `cancelled` when the answer is. Returns its end. */
  follow(row: TRow, cancelled: () => void): () => void;
}

/** Watches answers in a collection, by a function, or not at all. */
export function parentWatch<TRow extends object>(
  generations: Rows<GenerationContract> | undefined,
  isCancelled: ((row: TRow) => boolean | Promise<boolean>) | undefined,
  log: RowLog | undefined,
): ParentWatch<TRow> {
  const idOf = (row: TRow) => (row as Partial<CallRow>).generationId;
  const gone = (row: TRow) => {
    const id = idOf(row);
    return id !== undefined && generations?.get(id)?.status === "cancelled";
  };
  return {
    isCancelled: async (row) => gone(row) || (await isCancelled?.(row)) === true,
    conditions(row) {
      const id = idOf(row);
      // A condition is judged in one log only.
      if (id === undefined || generations === undefined || generations.log !== log) return [];
      const condition = generations.unchanged(id);
      return condition === undefined ? [] : [condition];
    },
    follow(row, cancelled) {
      if (generations === undefined) return () => {};
      const look = () => {
        if (gone(row)) cancelled();
      };
      look();
      return generations.subscribe(look);
    },
  };
}
