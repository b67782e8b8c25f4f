import type { Sql } from "../port.ts";
import { behindPrefix, tableOf } from "./table.ts";

/** `perdure_cell`: small named values (frozen prompts, memory blocks). One table: each table costs every agent a page. */
export const cellSchema: readonly string[] = [
  "CREATE TABLE perdure_cell (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
];

/** One cell. */
export interface CellRow {
  readonly key: string;
  readonly value: string;
}

const cells = tableOf<CellRow>()("perdure_cell", "key value");
export const CELL_TABLE = cells.name;

export function readCell(db: Sql, key: string): string | undefined {
  return cells.one(db, "key = ?", key)?.value;
}

/** The cells whose names begin with `prefix`, in the order of their names. */
export function listCells(db: Sql, prefix: string): CellRow[] {
  return cells.select(db, "WHERE key >= ? AND key < ? ORDER BY key", prefix, behindPrefix(prefix));
}

export function writeCell(db: Sql, key: string, value: string): void {
  cells.put(db, { key, value }, "(key)");
}

/** @returns whether it was there. */
export function deleteCell(db: Sql, key: string): boolean {
  return cells.deleted(db, "key = ?", key) > 0;
}

/** Deletes the cells whose names begin with `prefix`. @returns how many there were. */
export function deleteCells(db: Sql, prefix: string): number {
  return cells.deleted(db, "key >= ? AND key < ?", prefix, behindPrefix(prefix));
}

/** Deletes the cells whose names begin with `prefix` and come before `until`. */
export function deleteCellsBefore(db: Sql, prefix: string, until: string): void {
  cells.delete(db, "key >= ? AND key < ?", prefix, until);
}
