import type { RowOptions, Rows } from "./rows.ts";

/** How many rows are deleted in one write. */
const DELETED_TOGETHER = 500;

/**
 * Deletes rows in the order of their keys, many in one write. Those that somebody else has deleted meanwhile are no
 * problem.
 * @returns false when a condition of `options` did not hold; some may be deleted then.
 */
export async function deleteRows<TRow extends object>(
  rows: Rows<TRow>,
  keys: readonly string[],
  options: RowOptions = {},
): Promise<boolean> {
  let left = [...keys];
  while (left.length > 0) {
    const batch = left.slice(0, DELETED_TOGETHER);
    if (await rows.deleteAll(batch, options)) left = left.slice(batch.length);
    else if (batch.every((key) => rows.get(key) !== undefined)) return false;
    else left = left.filter((key) => rows.get(key) !== undefined);
  }
  return true;
}
