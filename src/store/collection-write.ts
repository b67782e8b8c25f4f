import type { Sql } from "../port.ts";

/** So many writes are known again by their names. */
const REMEMBERED_WRITES = 10_000;

/**
 * `perdure_row_write`: what became of the last writes to rows, so that one that is sent again counts once. The newest
 * one also says how far the counters are. Made together with `perdure_row`.
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

/** What became of a write. */
interface CollectionWrite {
  /** The number of the write; of one that was refused, that of the last one that was applied. */
  readonly seq: number;
  /** Why it was refused. Null: it was applied. */
  readonly refused: string | null;
  /** Of what it wrote and who did. Null: it was written before this was noted. */
  readonly digest: string | null;
}

/** How far the counters are. */
interface RowCounters {
  /** The last write that was applied. */
  readonly seq: number;
  /** What the next row that is inserted gets. */
  readonly nextOrder: number;
}

/** The counters; the tables must be there. */
export function rowCounters(db: Sql): RowCounters {
  const query = "SELECT seq, next_order AS nextOrder FROM perdure_row_write ORDER BY n DESC LIMIT 1";
  return db.sql<{ seq: number; nextOrder: number }>(query)[0] ?? { seq: 0, nextOrder: 1 };
}

/** The outcome of a write that is remembered. */
export function findCollectionWrite(db: Sql, txid: string): CollectionWrite | undefined {
  return db.sql<{ seq: number; refused: string | null; digest: string | null }>(
    "SELECT seq, refused, digest FROM perdure_row_write WHERE txid = ?",
    txid,
  )[0];
}

/** Remembers a write, and forgets the one that is {@link REMEMBERED_WRITES} older. */
export function rememberCollectionWrite(
  db: Sql,
  name: { readonly txid: string | undefined; readonly digest: string | undefined },
  counters: RowCounters,
  refused: string | null,
): void {
  const [added] = db.sql<{ n: number }>(
    "INSERT INTO perdure_row_write (txid, seq, next_order, refused, digest) VALUES (?, ?, ?, ?, ?) RETURNING n",
    name.txid ?? null,
    counters.seq,
    counters.nextOrder,
    refused,
    name.digest ?? null,
  );
  if (added !== undefined) db.sql("DELETE FROM perdure_row_write WHERE n <= ?", added.n - REMEMBERED_WRITES);
}
