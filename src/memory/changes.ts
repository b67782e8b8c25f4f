import type { SessionStore } from "../store/session-store.ts";
import { deleteCell, readCell, writeCell } from "../store/cell.ts";
import type { ContextOptions } from "./definition.ts";
import { cellOf } from "./keys.ts";

/** What was done to the blocks of a session at run time, beside what the code declares. */
export interface BlockChanges {
  /** Those that the agent stores itself. */
  readonly added: readonly (Omit<ContextOptions, "provider"> & { readonly label: string })[];
  /** Those of the code that were taken away. */
  readonly removed: readonly string[];
}

const NONE: BlockChanges = { added: [], removed: [] };

export function readChanges(host: SessionStore, session: string): BlockChanges {
  const json = host.blank ? undefined : readCell(host, cellOf.changes(session));
  return json === undefined ? NONE : (JSON.parse(json) as BlockChanges);
}

/** @param before what is stored: the same again is not written. */
export function writeChanges(host: SessionStore, session: string, before: BlockChanges, changes: BlockChanges): void {
  const json = JSON.stringify(changes);
  if (json === JSON.stringify(before)) return;
  const key = cellOf.changes(session);
  if (json === JSON.stringify(NONE)) deleteCell(host, key);
  else writeCell(host, key, json);
}
