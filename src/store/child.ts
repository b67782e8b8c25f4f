import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";

/** `perdure_child`: the children that an agent has made, in the order of their making. */
export const childSchema: readonly string[] = [
  `CREATE TABLE perdure_child (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    class_name TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (class_name, name)
  ) STRICT`,
];

/** A child as its parent knows it. */
export interface ChildRow {
  readonly className: string;
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

const children = tableOf<ChildRow>()("perdure_child", "className name createdAt");

/** Adds the child unless it is there. @returns whether it was added. */
export function addChild(db: Sql, className: string, name: string, now: number): boolean {
  const row = { className, name, createdAt: now };
  return children.insert(db, row, "ON CONFLICT DO NOTHING RETURNING seq").length > 0;
}

export function hasChild(db: Sql, className: string, name: string): boolean {
  return children.has(db, "class_name = ? AND name = ?", className, name);
}

export function listChildren(db: Sql, className?: string): ChildRow[] {
  if (className === undefined) return children.select(db, "ORDER BY seq");
  return children.select(db, "WHERE class_name = ? ORDER BY seq", className);
}

export function removeChild(db: Sql, className: string, name: string): void {
  children.delete(db, "class_name = ? AND name = ?", className, name);
}
