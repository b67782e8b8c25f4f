import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";

/** So many writes are known again by their names. */
const REMEMBERED_WRITES = 10_000;

/**
 * `perdure_row_write`: outcomes of the last row writes, so that a repeated one counts once. The newest also holds the counters.
 * Made together with `perdure_row`.
 */
export const collectionWriteSchema: readonly string[] = [
  `CREATE TABLE perdure_row_write (
    n INTEGER PRIMARY KEY,
    txid TEXT,
    seq INTEGER NOT NULL,
    next_order INTEGER NOT NULL,
    refused TEXT
  ) STRICT`,
  "CREATE UNIQUE INDEX perdure_row_write_txid ON perdure_row_write (txid) WHERE txid IS NOT NULL",
];

/** To tell writes apart that have the same name. A step of its own: there are tables from before. */
export const writeDigestSchema: readonly string[] = ["ALTER TABLE perdure_row_write ADD COLUMN digest TEXT"];

/** A write, by its name. */
interface CollectionWrite extends RowCounters {
  readonly n: number;
  readonly txid: string | null;
  /** Why it was refused. Null: it was applied. */
  readonly refused: string | null;
  /** Of what it wrote and who did. Null: it was written before this was noted. */
  readonly digest: string | null;
}

/** How far the counters are. */
interface RowCounters {
  /** The write; of one that was refused, the last that was applied. */
  readonly seq: number;
  /** What the next row that is inserted gets. */
  readonly nextOrder: number;
}

const writes = tableOf<CollectionWrite>()("perdure_row_write", "n txid seq nextOrder refused digest");

/** The counters; the tables must be there. */
export function rowCounters(db: Sql): RowCounters {
  return writes.select(db, "ORDER BY n DESC LIMIT 1")[0] ?? { seq: 0, nextOrder: 1 };
}

/** The outcome of a write that is remembered. */
export function findCollectionWrite(db: Sql, txid: string): CollectionWrite | undefined {
  return writes.one(db, "txid = ?", txid);
}

/** Remembers a write, and forgets the one that is {@link REMEMBERED_WRITES} older. */
export function rememberCollectionWrite(
  db: Sql,
  name: { readonly txid: string | undefined; readonly digest: string | undefined },
  counters: RowCounters,
  refused: string | null,
): void {
  const { n } = writes.add(db, { ...name, seq: counters.seq, nextOrder: counters.nextOrder, refused });
  writes.delete(db, "n <= ?", n - REMEMBERED_WRITES);
}
