import type { RowLog } from "perdure/collections";
import type { RowTable } from "perdure/collections/log";
import { ownLog } from "./own-log.ts";

/** The same log, which counts how often all rows of a table are read. */
export function countReads(log: RowLog, name: string): { readonly log: RowLog; readonly reads: () => number } {
  let reads = 0;
  const inner = log.table(name);
  const table: RowTable = {
    get: (key) => inner.get(key),
    rows: () => (reads++, inner.rows()),
    get size() {
      return inner.size;
    },
    version: (key) => inner.version(key),
    subscribe: (listener) => inner.subscribe(listener),
  };
  return { log: ownLog(log, { table: (asked) => (asked === name ? table : log.table(asked)) }), reads: () => reads };
}
