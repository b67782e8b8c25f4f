import type { Sql } from "../port.ts";
import { newId } from "../base/id.ts";
import { readCell, writeCell } from "./cell.ts";
import { Table } from "./table.ts";
import { collectionWriteSchema, writeDigestSchema } from "./collection-write.ts";

/**
 * `perdure_row`: the rows of an agent's collections. No migration: an agent has it from its first row on. A deleted row stays
 * without its value, because its version must never come again. `seq` is the last write that changed the row, `ord` grows with
 * each insert.
 */
const schema: readonly string[] = [
  `CREATE TABLE perdure_row (
    collection TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    ord INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    value TEXT,
    PRIMARY KEY (collection, key)
  ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX perdure_row_seq ON perdure_row (collection, seq)",
];

const LIFE_KEY = "rows:life";
/** The tables have all that this version needs. */
const VERSION_KEY = "rows:version";
const VERSION = "2";
const EPOCH_PREFIX = "rows:producer:";

/** A row as it is stored. `value` is JSON; null: it was deleted. */
export interface CollectionRow {
  readonly collection: string;
  readonly key: string;
  readonly version: number;
  readonly order: number;
  /** The write that changed it last. */
  readonly seq: number;
  readonly value: string | null;
}

const rows = new Table<CollectionRow>("perdure_row", ["collection", "key", "version", "order", "seq", "value"], {
  order: "ord",
});

/** Names the rows of this agent, as opposed to those of one that had its address before. Undefined: there never was a row. */
export function rowsLife(db: Sql): string | undefined {
  return readCell(db, LIFE_KEY);
}

/** Makes the tables unless they are there, and adds what those of an earlier version lack. @returns what {@link rowsLife} does. */
export function prepareRows(db: Sql): string {
  const known = rowsLife(db);
  if (known !== undefined && readCell(db, VERSION_KEY) === VERSION) return known;
  const life = known ?? newId();
  db.tx(() => {
    const tables = known === undefined ? [...schema, ...collectionWriteSchema] : [];
    for (const statement of [...tables, ...writeDigestSchema]) db.sql(statement);
    writeCell(db, LIFE_KEY, life);
    writeCell(db, VERSION_KEY, VERSION);
  });
  return life;
}

/** The row, also one that was deleted. The tables must be there, here and below. */
export function readCollectionRow(db: Sql, collection: string, key: string): CollectionRow | undefined {
  return rows.one(db, "collection = ? AND key = ?", collection, key);
}

export function putCollectionRow(db: Sql, row: CollectionRow): void {
  rows.put(db, row, "(collection, key)");
}

/** Rows in the order of their last change, from behind one of them on, deleted ones too, and those that are damaged. */
export function rowsChangedAfter(
  db: Sql,
  collection: string,
  after: { readonly seq: number; readonly key: string },
  limit: number,
): (CollectionRow & { readonly readable: 0 | 1 })[] {
  return db.sql<CollectionRow & { readable: 0 | 1 }>(
    `SELECT ${rows.columns}, value IS NULL OR json_valid(value) AS readable FROM perdure_row WHERE collection = ? AND (seq, key) > (?, ?) ORDER BY seq, key LIMIT (SELECT ?)`,
    collection,
    after.seq,
    after.key,
    limit,
  );
}

/** Rows that are there, in the order of their inserts, from behind `after` on. */
export function listCollectionRows(
  db: Sql,
  collection: string,
  { after = 0, limit = -1 }: { readonly after?: number; readonly limit?: number } = {},
): CollectionRow[] {
  const rest = "WHERE collection = ? AND value IS NOT NULL AND ord > ? ORDER BY ord LIMIT (SELECT ?)";
  return rows.select(db, rest, collection, after, limit);
}

/** How many rows are there. */
export function countCollectionRows(db: Sql, collection: string): number {
  return rows.count(db, "collection = ? AND value IS NOT NULL", collection);
}

/** The collections that have, or had, rows. Looks once per collection, not once per row. */
export function collectionNames(db: Sql): string[] {
  const rows = db.sql<{ name: string }>(
    `WITH RECURSIVE one (name) AS (
      SELECT min(collection) FROM perdure_row
      UNION ALL
      SELECT (SELECT min(collection) FROM perdure_row WHERE collection > name) FROM one WHERE name IS NOT NULL
    ) SELECT name FROM one WHERE name IS NOT NULL`,
  );
  return rows.map(({ name }) => name);
}

/** The latest epoch of a producer, or undefined. */
export function producerEpoch(db: Sql, producer: string): number | undefined {
  const epoch = readCell(db, EPOCH_PREFIX + producer);
  return epoch === undefined ? undefined : Number(epoch);
}

export function writeProducerEpoch(db: Sql, producer: string, epoch: number): void {
  writeCell(db, EPOCH_PREFIX + producer, String(epoch));
}
