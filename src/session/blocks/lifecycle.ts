import type { Sql } from "../../port.ts";
import { type CellRow, deleteCell, listCells, readCell, writeCell } from "../../store/cell.ts";
import { cellOf } from "./keys.ts";

/**
 * Gives a session that was forked the blocks of the one that it came from: what they hold, what was added and taken
 * away, the frozen prompt, and what is loaded. In the caller's transaction. Shared blocks are shared already.
 */
export function copyContext(db: Sql, from: string, to: string): void {
  for (const { key, value } of cellsOf(db, from))
    writeCell(
      db,
      key.replace(`:${from}`, () => `:${to}`),
      value,
    );
}

/** Deletes what the blocks of a session hold, in the caller's transaction. Shared blocks stay. */
export function deleteContext(db: Sql, session: string): void {
  for (const { key } of cellsOf(db, session)) deleteCell(db, key);
}

function cellsOf(db: Sql, session: string): CellRow[] {
  const perBlock = [cellOf.block("", session), cellOf.source("", session)].flatMap((prefix) =>
    // A session whose name begins with this one's and a colon has cells behind the same prefix.
    listCells(db, prefix).filter(({ key }) => !key.slice(prefix.length).includes(":")),
  );
  const single = [cellOf.prompt(session), cellOf.changes(session), cellOf.loaded(session)].flatMap((key) => {
    const value = readCell(db, key);
    return value === undefined ? [] : [{ key, value }];
  });
  return [...perBlock, ...single];
}
