import { sha256 } from "../base/hash.ts";
import { isRecord, tryParseJson } from "../base/json.ts";
import type { Sql } from "../port.ts";
import { deleteCell, readCell, writeCell } from "../store/cell.ts";

/** What the root of an agent knows of a place at a messenger. */
export interface ThreadRow {
  /** Where its conversation lives; fixed with the first message, so that no open question moves. */
  readonly target: ThreadTarget;
  readonly subscribed: boolean;
  readonly dm: boolean;
  readonly title?: string;
}

/** As it is stored. */
export type ThreadTarget =
  | { readonly kind: "self"; readonly session?: string; readonly bound: boolean }
  | { readonly kind: "child"; readonly className: string; readonly name: string };

const PREFIX = "messenger:thread:";
const keyOf = (messenger: string, thread: string) => `${PREFIX}${messenger}:${thread}`;

export function readThread(db: Sql, messenger: string, thread: string): ThreadRow | undefined {
  const value = tryParseJson(readCell(db, keyOf(messenger, thread)) ?? "");
  return isRecord(value) && isRecord(value.target) ? (value as unknown as ThreadRow) : undefined;
}

export function writeThread(db: Sql, messenger: string, thread: string, row: ThreadRow): void {
  writeCell(db, keyOf(messenger, thread), JSON.stringify(row));
}

/** The network calls the place by another name from now on. */
export function moveThread(db: Sql, messenger: string, from: string, to: string): void {
  const row = readThread(db, messenger, from);
  if (row === undefined || readThread(db, messenger, to) !== undefined) return;
  writeThread(db, messenger, to, row);
  deleteCell(db, keyOf(messenger, from));
}

/** Names longer than this are shortened to a hash: they become parts of file names. */
const MAX_NAME_BYTES = 100;

/** What the child, or the session, of a thread is called. Two threads never share one. */
export async function nameOfThread(messenger: string, thread: string): Promise<string> {
  const name = `messenger:${messenger}:${encodeURIComponent(thread)}`;
  return name.length <= MAX_NAME_BYTES ? name : `messenger:${messenger}:${await sha256(thread)}`;
}
