import type { GenerationContract } from "../contract.ts";
import type { RowCondition, RowLog } from "../log/row-log.ts";
import type { Rows } from "../rows.ts";
import type { CallItem } from "./call-parts.ts";

/** What is known of the answers that calls belong to. */
export interface ParentWatch<TRow extends object> {
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
