import fs from "node:fs";
import type { IndexMark } from "./index-mark.ts";
import { openSqlite } from "./open-sqlite.ts";

/** Where the header of a database says how it is written and read: with a log, or without. */
const JOURNAL_BYTES = [18, 19];
const WITHOUT_LOG = 1;

/**
 * A main file from before the last time that the log was moved into it is an old copy, and the log beside it is not its own:
 * SQLite would make a mixture of the two. Then the log is deleted, so that the copy is seen for what it is.
 * Only for a file that nothing in this process has open: to close it would drop SQLite's locks on it.
 */
export function dropForeignLog(file: string, mark: IndexMark | undefined): void {
  if (mark?.base === undefined || !isFilled(`${file}-wal`)) return;
  const own = countAlone(file);
  if (own === undefined || own >= mark.base) return;
  fs.rmSync(`${file}-wal`, { force: true });
  fs.rmSync(`${file}-shm`, { force: true });
}

/** How far the main file has come by itself. Undefined: it does not say. */
function countAlone(file: string): number | undefined {
  try {
    const bytes = fs.readFileSync(file);
    for (const at of JOURNAL_BYTES) bytes[at] = WITHOUT_LOG;
    const db = openSqlite(bytes);
    try {
      return db.prepare<[], number>("SELECT count FROM mark").pluck().get();
    } finally {
      db.close();
    }
  } catch {
    return undefined;
  }
}

function isFilled(file: string): boolean {
  return (fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
}
