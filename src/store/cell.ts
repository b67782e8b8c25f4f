import type { Sql } from "../port.ts";

/**
 * `perdure_cell`: small things that change, each under a name: what a prompt was frozen as, what a memory block holds,
 * how far the search index is. One table for all of them, because each table costs every agent a page.
 */
export const cellSchema: readonly string[] = [
  "CREATE TABLE perdure_cell (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
];

/** One cell. */
export interface CellRow {
  readonly key: string;
  readonly value: string;
}

export function readCell(db: Sql, key: string): string | undefined {
  return db.sql<{ value: string }>("SELECT value FROM perdure_cell WHERE key = ?", key)[0]?.value;
}

/** The cells whose names begin with `prefix`, in the order of their names. */
export function listCells(db: Sql, prefix: string): CellRow[] {
  return db.sql<CellRow & Record<string, string>>(
    "SELECT key, value FROM perdure_cell WHERE key >= ? AND key < ? ORDER BY key",
    prefix,
    after(prefix),
  );
}

export function writeCell(db: Sql, key: string, value: string): void {
  db.sql(
    "INSERT INTO perdure_cell (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    key,
    value,
  );
}

/** @returns whether it was there. */
export function deleteCell(db: Sql, key: string): boolean {
  return db.sql("DELETE FROM perdure_cell WHERE key = ? RETURNING key", key).length > 0;
}

/** Deletes the cells whose names begin with `prefix`. @returns how many there were. */
export function deleteCells(db: Sql, prefix: string): number {
  return db.sql("DELETE FROM perdure_cell WHERE key >= ? AND key < ? RETURNING key", prefix, after(prefix)).length;
}

/** Deletes the cells whose names begin with `prefix` and come before `until`. */
export function deleteCellsBefore(db: Sql, prefix: string, until: string): void {
  db.sql("DELETE FROM perdure_cell WHERE key >= ? AND key < ?", prefix, until);
}

/** The first name behind all that begin with `prefix`. */
function after(prefix: string): string {
  return `${prefix}\u{10FFFF}`;
}
