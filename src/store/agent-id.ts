import type { Sql } from "../port.ts";
import { readCell, writeCell } from "./cell.ts";

const KEY = "agent:id";

/** Whose database this is, if it says so. */
export function readAgentId(db: Sql): string | undefined {
  return readCell(db, KEY);
}

/** Notes in a database whose it is, so that it can be told from the file alone. @returns whether it did not say so before */
export function noteAgentId(db: Sql, id: string): boolean {
  if (readCell(db, KEY) === id) return false;
  writeCell(db, KEY, id);
  return true;
}
