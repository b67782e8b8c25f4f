import { PerdureError } from "../../base/error.ts";
import { type CollectionRow, rowsChangedAfter } from "../../store/collection-row.ts";
import { tellDamage } from "../../store/damaged.ts";
import {
  encodePageFrame,
  encodePageRow,
  MAX_FOLLOWED,
  type ParsedRowFrame,
  type RowCursor,
  type RowError,
} from "../../wire/row-frames.ts";
import type { CollectionRows } from "./rows.ts";
import { ANY_COLLECTION, requireReadable, rowError } from "./rules.ts";
import type { Connection } from "../../door/connection.ts";

/** A page has at most so many rows … */
const PAGE_ROWS = 1_000;
/** … and ends with the row that makes it longer than this, in UTF-16 units. */
const PAGE_LENGTH = 256 * 1024;
/** Rows are read so many at a time, because each may be long. */
const READ_ROWS = 50;

type Subscribe = Extract<ParsedRowFrame, { kind: "rows-subscribe" }>;

/**
 * Sends a subscriber its next page; with the last it becomes a follower at once, so it misses nothing and hears nothing twice.
 * Rows that change between pages come again.
 */
export function sendPage(rows: CollectionRows, connection: Connection, frame: Subscribe): void {
  const { life, seq } = rows;
  const { names, refused } = admitted(rows, connection, frame);
  const reset: string[] = [];
  const cursors = new Map<string, RowCursor>();
  for (const name of names) {
    const asked = frame.since.get(name) ?? 0;
    // Rows of an agent that was deleted since, or of a backup that was put back.
    const isStrange = !isStart(asked) && (frame.life !== life || seqOf(asked) > seq);
    if (isStrange) reset.push(name);
    cursors.set(name, isStrange ? 0 : asked);
  }
  const page = new Page(rows);
  // A client may name many that never had a row.
  const filled = frame.all ? new Set(rows.names()) : undefined;
  const isLast =
    life === "" ||
    [...cursors].every(([name, cursor]) => filled?.has(name) === false || page.fill(name, cursor, cursors));
  const isOpen = frame.all && Object.hasOwn(rows.collections, ANY_COLLECTION);
  if (isLast) {
    for (const name of names) cursors.set(name, seq);
    follow(connection, names, frame.all);
  }
  const head = {
    id: frame.id,
    life,
    since: Object.fromEntries(cursors),
    ...(reset.length > 0 && { reset }),
    ...(refused.size > 0 && { refused: Object.fromEntries(refused) }),
    ...(isOpen && ({ open: true } as const)),
    ...(isLast && { seq }),
  };
  connection.send(encodePageFrame(head, page.rows));
}

/** A client no longer wants to be told of these collections, or of any. */
export function unfollow(connection: Connection, names: readonly string[] | undefined): void {
  const { following } = connection;
  connection.following =
    names === undefined
      ? { names: [], all: false }
      : { ...following, names: following.names.filter((name) => !names.includes(name)) };
}

/** Who follows all has no list of names: each is looked at when it changes. */
function follow(connection: Connection, admittedNames: readonly string[], all: boolean): void {
  const { following } = connection;
  const isAll = following.all || all;
  const names = isAll ? [] : [...new Set([...following.names, ...admittedNames])];
  connection.following = { names, all: isAll };
}

/** What of it the client may follow, and why not the rest. */
function admitted(
  rows: CollectionRows,
  connection: Connection,
  { since, all }: Subscribe,
): { readonly names: string[]; readonly refused: Map<string, RowError> } {
  const names: string[] = [];
  const refused = new Map<string, RowError>();
  const { collections } = rows;
  const followed = new Set(connection.following.names);
  for (const name of since.keys()) {
    try {
      requireReadable(collections, name, connection);
      if (!all && !followed.has(name) && followed.size >= MAX_FOLLOWED) {
        throw new PerdureError("limit", `A connection follows at most ${MAX_FOLLOWED} collections by name.`);
      }
      followed.add(name);
      names.push(name);
    } catch (thrown) {
      refused.set(name, rowError(thrown));
      rows.heardOf(thrown);
    }
  }
  if (!all) return { names, refused };
  for (const name of new Set([...Object.keys(collections), ...rows.names()])) {
    if (name === ANY_COLLECTION || since.has(name)) continue;
    try {
      requireReadable(collections, name, connection);
      names.push(name);
    } catch (thrown) {
      // "All" is all that it may read.
      rows.heardOf(thrown);
    }
  }
  return { names, refused };
}

/** The rows of one page, each as JSON. */
class Page {
  readonly rows: string[] = [];
  readonly #rows: CollectionRows;
  #length = 0;

  constructor(rows: CollectionRows) {
    this.#rows = rows;
  }

  /** Adds rows of a collection and moves its cursor. False: the page is full, and there may be more. */
  fill(name: string, from: RowCursor, cursors: Map<string, RowCursor>): boolean {
    let after = startOf(from);
    for (;;) {
      const read = rowsChangedAfter(this.#rows.host, name, after, READ_ROWS);
      for (const row of read) {
        if (this.rows.length >= PAGE_ROWS || this.#length >= PAGE_LENGTH) return false;
        if (row.readable === 1) this.#add(row);
        else
          tellDamage(
            this.#rows.host,
            `the row ${JSON.stringify(row.key)} of ${JSON.stringify(name)}`,
            "It is not JSON.",
          );
        after = { seq: row.seq, key: row.key };
        cursors.set(name, [row.seq, row.key]);
      }
      if (read.length < READ_ROWS) return true;
    }
  }

  #add({ collection, key, version, order, value }: CollectionRow): void {
    const text = encodePageRow({ table: collection, key, version, order }, value);
    this.#length += text.length;
    this.rows.push(text);
  }
}

/** Keys are never empty, so this stands before all rows behind `cursor`. */
function startOf(cursor: RowCursor): { readonly seq: number; readonly key: string } {
  return typeof cursor === "number" ? { seq: cursor + 1, key: "" } : { seq: cursor[0], key: cursor[1] };
}

function seqOf(cursor: RowCursor): number {
  return typeof cursor === "number" ? cursor : cursor[0];
}

function isStart(cursor: RowCursor): boolean {
  return cursor === 0;
}
