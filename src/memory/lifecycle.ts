import type { Sql } from "../port.ts";
import { type CellRow, deleteCell, listCells, readCell, writeCell } from "../store/cell.ts";
import { ASIDE } from "../store/damaged.ts";
import { cellOf } from "./keys.ts";
import { settleUnloads } from "./loaded.ts";

/** Copies a session's blocks to its fork: contents, additions, removals, frozen prompt, loads. In the caller's transaction. */
export function copyContext(db: Sql, from: string, to: string): void {
  for (const { key, value } of cellsOf(db, from))
    writeCell(
      db,
      key.replace(`:${from}`, () => `:${to}`),
      value,
    );
}

/** After a clear, in the caller's transaction: nothing is loaded, the prompt is made anew. What blocks hold stays. */
export function beginContextAnew(db: Sql, session: string): void {
  deleteCell(db, cellOf.prompt(session));
  deleteCell(db, cellOf.loaded(session));
}

/** After a compaction, in the caller's transaction: the request changes anyway, so unloads settle and the prompt is made anew. */
export function contextCompacted(db: Sql, session: string): void {
  settleUnloads(db, session);
  deleteCell(db, cellOf.prompt(session));
}

/** Deletes what a session's own blocks hold, also what was unreadable and kept aside. In the caller's transaction. */
export function deleteContext(db: Sql, session: string): void {
  for (const { key } of cellsOf(db, session)) deleteCell(db, key);
  for (const [prefix, colons] of prefixes(session)) {
    for (const { key } of cellsBelow(db, `${ASIDE}${prefix}`, colons + 1)) deleteCell(db, key);
  }
}

function cellsOf(db: Sql, session: string): CellRow[] {
  const perBlock = prefixes(session).flatMap(([prefix, colons]) => cellsBelow(db, prefix, colons));
  const single = [cellOf.prompt(session), cellOf.changes(session), cellOf.loaded(session)].flatMap((key) => {
    const value = readCell(db, key);
    return value === undefined ? [] : [{ key, value }];
  });
  return [...perBlock, ...single];
}

/** A session whose name begins with this one's and a colon has cells behind the same prefix: the colons tell. */
function cellsBelow(db: Sql, prefix: string, colons: number): CellRow[] {
  return listCells(db, prefix).filter(({ key }) => key.slice(prefix.length).split(":").length === colons + 1);
}

/** How the names of cells of a session's blocks begin, and how many colons come after that. */
function prefixes(session: string): [prefix: string, colons: number][] {
  return [
    [cellOf.block("", session), 0],
    [cellOf.source("", session), 0],
    [cellOf.entries("", session), 0],
    [`entry:${session}:`, 1],
  ];
}
