import type { Sql } from "../port.ts";
import { type CellRow, deleteCell, listCells, readCell, writeCell } from "../store/cell.ts";
import { ASIDE } from "../store/damaged.ts";
import { cellOf } from "./keys.ts";
import { settleUnloads } from "./loaded.ts";

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

/**
 * The conversation of a session was cleared, in the caller's transaction: nothing is loaded any more, and the next
 * prompt is made from what the blocks hold. What they hold stays.
 */
export function beginContextAnew(db: Sql, session: string): void {
  deleteCell(db, cellOf.prompt(session));
  deleteCell(db, cellOf.loaded(session));
}

/**
 * The conversation of a session was compacted, in the caller's transaction: the request changes anyway, so what was
 * unloaded goes now, and the next prompt is made from what the blocks hold.
 */
export function contextCompacted(db: Sql, session: string): void {
  settleUnloads(db, session);
  deleteCell(db, cellOf.prompt(session));
}

/**
 * Deletes what the blocks of a session hold, in the caller's transaction, also what could not be read and was kept aside.
 * Shared blocks stay.
 */
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
