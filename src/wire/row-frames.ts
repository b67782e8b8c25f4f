import { isCount, isRecord } from "../base/json.ts";
import { isId } from "./id.ts";
import type { JsonObject } from "./json.ts";

/*
 * Rows of collections, an addition to the public wire. Only who has subscribed is sent anything of it.
 *
 *   client   { "type": "perdure_rows_subscribe", "id": "q1", "since": { "messages": 0 } }
 *   server   { "type": "perdure_rows_page", "id": "q1", "life": "…", "since": { "messages": [7, "k"] }, "rows": [ … ] }
 *   client   { "type": "perdure_rows_subscribe", "id": "q1", "life": "…", "since": { "messages": [7, "k"] } }
 *   server   { "type": "perdure_rows_page", …, "rows": [ … ], "seq": 9 }       the last page: from here on it is told
 *   server   { "type": "perdure_rows_changed", "seq": 10, "txid": "t1", "changes": [ … ] }
 *
 *   client   { "type": "perdure_rows_write", "txid": "t1", "changes": [ … ], "when": [ … ], "producer": { … } }
 *   server   { "type": "perdure_rows_receipt", "txid": "t1", "applied": true, "seq": 10 }
 *   server   { "type": "perdure_rows_error", "txid": "t1", "error": { "code": "fenced", "message": "…" } }
 */

/** The longest key of a row, in UTF-16 units. */
export const MAX_ROW_KEY_LENGTH = 512;
/** The longest name of a collection. */
export const MAX_COLLECTION_NAME = 200;
/** The most changes, and the most conditions, of one write. */
export const MAX_ROW_CHANGES = 1_000;
/** The longest write that a client sends, in UTF-16 units. More would hold up everybody else for more than a tenth of a second. */
export const MAX_ROW_WRITE_LENGTH = 3 * 1024 * 1024;
/** The most collections that one connection follows by name. */
export const MAX_FOLLOWED = 500;
/** The most collections that a client that follows all of them may already know. */
export const MAX_KNOWN = 10_000;
/** All frames of this file begin like this, whoever sends them. */
export const ROW_FRAME_START = '{"type":"perdure_rows_';

/** How a row is changed. */
type RowOperation = "insert" | "update" | "upsert" | "delete";
const OPERATIONS: ReadonlySet<unknown> = new Set(["insert", "update", "upsert", "delete"]);

/** A change of one row. An update replaces the whole row. */
export interface RowChange {
  /** The collection. */
  readonly table: string;
  readonly key: string;
  /** `insert` of a row that is there, and `update` or `delete` of one that is not, are refused with the write. */
  readonly operation: RowOperation;
  /** The whole row; absent for `delete`. */
  readonly value?: JsonObject;
}

/** Holds only if the row is at this version. 0: it was never there. */
export interface RowCondition {
  readonly table: string;
  readonly key: string;
  readonly version: number;
}

/** Who writes. A later epoch of the same id shuts out the earlier ones for good. */
export interface RowProducer {
  readonly id: string;
  readonly epoch: number;
}

/** Changes that are applied together, or not at all. */
export interface RowWrite {
  readonly changes: readonly RowChange[];
  /** What must hold when it is applied. */
  readonly when?: readonly RowCondition[];
  readonly producer?: RowProducer;
  /** Names the write: sent again under the same name, it counts once. */
  readonly txid?: string;
}

/** How far a client has read a collection: all up to a write, or up to a row of it. */
export type RowCursor = number | readonly [seq: number, key: string];

/** What a client may send. */
export type RowRequestFrame =
  | {
      readonly type: "perdure_rows_subscribe";
      readonly id: string;
      /** What the agent called its rows when it told the client how far it is. */
      readonly life?: string;
      /** By collection. */
      readonly since: { readonly [collection: string]: RowCursor };
      /** These, and all others that it may read, also those that are made later. */
      readonly all?: boolean;
    }
  | { readonly type: "perdure_rows_unsubscribe"; readonly collections?: readonly string[] }
  | ({ readonly type: "perdure_rows_write"; readonly txid: string } & Omit<RowWrite, "txid">);

/** A row in a page. Without `value` it was deleted. */
export interface PageRow {
  readonly table: string;
  readonly key: string;
  readonly version: number;
  readonly order: number;
  readonly value?: JsonObject;
}

/** Why something about rows cannot be. */
export interface RowError {
  readonly code: string;
  readonly message: string;
}

/** The answer to a subscription. */
export interface RowPageFrame {
  readonly type: "perdure_rows_page";
  readonly id: string;
  readonly life: string;
  /** How far the client is with each collection that it follows when it has read this page. */
  readonly since: { readonly [collection: string]: RowCursor };
  readonly rows: readonly PageRow[];
  /** Collections of which the client must forget all that it had before this page. */
  readonly reset?: readonly string[];
  /** Collections that it cannot follow. */
  readonly refused?: { readonly [collection: string]: RowError };
  /** Every name is a collection here. Only when the client asked for all. */
  readonly open?: true;
  /** On the last page: the last write that was applied. Absent: ask for the next page. */
  readonly seq?: number;
}

/** A change as it was applied. */
export interface AppliedRowChange {
  readonly table: string;
  readonly key: string;
  readonly operation: "insert" | "update" | "delete";
  /** 1 with its first insert, one more with each change, also across a delete and a new insert. */
  readonly version: number;
  /** Grows with each first insert: rows sorted by it are in the order of their inserts. */
  readonly order: number;
  /** The row; of a deleted one what it was, and not sent to clients. */
  readonly value: JsonObject;
}

/** A write was applied: its changes in the collections that the client follows. */
export interface RowsChangedFrame {
  readonly type: "perdure_rows_changed";
  readonly seq: number;
  readonly txid?: string;
  /** With the first write of all: what the agent calls its rows. */
  readonly life?: string;
  readonly changes: readonly (Omit<AppliedRowChange, "value"> & { readonly value?: JsonObject })[];
}

/** What became of a write; sent when it is durable, and behind its changes. */
export interface RowReceiptFrame {
  readonly type: "perdure_rows_receipt";
  readonly txid: string;
  readonly applied: boolean;
  /** Why not, for people. */
  readonly refused?: string;
  readonly seq: number;
}

/** A frame about rows that did nothing. */
export interface RowErrorFrame {
  readonly type: "perdure_rows_error";
  /** Of a subscription … */
  readonly id?: string;
  /** … or of a write. Neither, when the frame told none. */
  readonly txid?: string;
  /** A collection that the client followed and may not read any more. It should forget its rows. */
  readonly collection?: string;
  readonly error: RowError;
}

/** What a server sends. */
export type RowServerFrame = RowPageFrame | RowsChangedFrame | RowReceiptFrame | RowErrorFrame;

/** A frame of a client about rows, checked. */
export type ParsedRowFrame =
  | {
      readonly kind: "rows-subscribe";
      readonly id: string;
      readonly life: string | undefined;
      readonly since: ReadonlyMap<string, RowCursor>;
      readonly all: boolean;
    }
  | { readonly kind: "rows-unsubscribe"; readonly collections: readonly string[] | undefined }
  | { readonly kind: "rows-write"; readonly txid: string; readonly write: RowWrite }
  | {
      readonly kind: "rows-refused";
      readonly id?: string;
      readonly txid?: string;
      readonly reason: string;
      /** Default `bad_input`. */
      readonly code?: "too_large";
    };

/** Understands a frame whose type begins with `perdure_rows_`. Never throws. Undefined: of no type that is known. */
export function parseRowFrame(frame: JsonObject): ParsedRowFrame | undefined {
  switch (frame.type) {
    case "perdure_rows_subscribe":
      return parseSubscribe(frame);
    case "perdure_rows_unsubscribe": {
      const names = frame.collections ?? undefined;
      if (names === undefined) return { kind: "rows-unsubscribe", collections: undefined };
      if (!Array.isArray(names) || names.length > MAX_FOLLOWED || !names.every((name) => isName(name)))
        return bad(frame, "collections");
      return { kind: "rows-unsubscribe", collections: names as string[] };
    }
    case "perdure_rows_write":
      return parseWrite(frame);
    default:
      return undefined;
  }
}

function parseSubscribe(frame: JsonObject): ParsedRowFrame {
  const { id } = frame;
  if (!isId(id)) return bad(frame, "id", typeof id === "string" ? { id } : {});
  const told = { id };
  const life = frame.life ?? undefined;
  if (life !== undefined && !isId(life)) return bad(frame, "life", told);
  const all = frame.all ?? false;
  if (typeof all !== "boolean") return bad(frame, "all", told);
  if (!isRecord(frame.since)) return bad(frame, "since", told);
  const since = new Map<string, RowCursor>();
  for (const [name, cursor] of Object.entries(frame.since)) {
    const read = parseCursor(cursor);
    if (!isName(name) || read === undefined) return bad(frame, "since", told);
    since.set(name, read);
  }
  const most = all ? MAX_KNOWN : MAX_FOLLOWED;
  if (since.size > most) return bad(frame, "since", told, `names more than ${most} collections`);
  return { kind: "rows-subscribe", id, life, since, all };
}

function parseCursor(value: unknown): RowCursor | undefined {
  if (isCount(value)) return value;
  if (!Array.isArray(value) || value.length !== 2) return undefined;
  const [seq, key] = value as unknown[];
  return isCount(seq) && isId(key, MAX_ROW_KEY_LENGTH) ? [seq, key] : undefined;
}

function parseWrite(frame: JsonObject): ParsedRowFrame {
  const { txid } = frame;
  if (!isId(txid)) return bad(frame, "txid", typeof txid === "string" ? { txid } : {});
  const told = { txid };
  const when = frame.when ?? [];
  const producer = frame.producer ?? undefined;
  if (!Array.isArray(frame.changes) || frame.changes.length === 0) return bad(frame, "changes", told);
  if (!Array.isArray(when)) return bad(frame, "when", told);
  if (frame.changes.length > MAX_ROW_CHANGES || when.length > MAX_ROW_CHANGES) {
    return bad(frame, "changes", told, `has more than ${MAX_ROW_CHANGES} changes or conditions`);
  }
  const changes: RowChange[] = [];
  for (const one of frame.changes as unknown[]) {
    const change = parseChange(one);
    if (change === undefined) return bad(frame, `changes[${changes.length}]`, told);
    changes.push(change);
  }
  const conditions: RowCondition[] = [];
  for (const one of when as unknown[]) {
    if (!isRecord(one) || !isName(one.table) || !isId(one.key, MAX_ROW_KEY_LENGTH) || !isCount(one.version)) {
      return bad(frame, `when[${conditions.length}]`, told);
    }
    conditions.push({ table: one.table, key: one.key, version: one.version });
  }
  const writer = producer === undefined ? undefined : parseProducer(producer);
  if (producer !== undefined && writer === undefined) return bad(frame, "producer", told);
  const write = { txid, changes, when: conditions, ...(writer === undefined ? {} : { producer: writer }) };
  return { kind: "rows-write", txid, write };
}

function parseChange(value: unknown): RowChange | undefined {
  if (!isRecord(value)) return undefined;
  const { table, key, operation } = value;
  if (!isName(table) || !isId(key, MAX_ROW_KEY_LENGTH) || !OPERATIONS.has(operation)) return undefined;
  const change = { table, key, operation: operation as RowOperation };
  if (operation === "delete") return change;
  return isRecord(value.value) ? { ...change, value: value.value } : undefined;
}

function parseProducer(value: unknown): RowProducer | undefined {
  if (!isRecord(value) || !isId(value.id) || !isCount(value.epoch)) return undefined;
  return { id: value.id, epoch: value.epoch };
}

function isName(value: unknown): value is string {
  return isId(value, MAX_COLLECTION_NAME);
}

function bad(
  frame: JsonObject,
  field: string,
  told: { readonly id?: string; readonly txid?: string } = {},
  what = "is missing or malformed",
): ParsedRowFrame {
  return { kind: "rows-refused", ...told, reason: `${String(frame.type)}: "${field}" ${what}` };
}

/** Why `name` cannot be a collection or a key, or undefined when it can. */
export function rowNameProblem(name: unknown, maxLength = MAX_COLLECTION_NAME): string | undefined {
  return isId(name, maxLength) ? undefined : `must be a string of 1 to ${maxLength} characters`;
}

/** A row for a page, as JSON. `valueJson` null: it was deleted. */
export function encodePageRow(row: Omit<PageRow, "value">, valueJson: string | null): string {
  const head = `{"table":${JSON.stringify(row.table)},"key":${JSON.stringify(row.key)},"version":${row.version},"order":${row.order}`;
  return valueJson === null ? `${head}}` : `${head},"value":${valueJson}}`;
}

/** A change for {@link encodeChangedFrame}, as JSON. `valueJson` null: it was deleted. */
export function encodeRowChange(change: Omit<AppliedRowChange, "value">, valueJson: string | null): string {
  return `{"operation":"${change.operation}",${encodePageRow(change, valueJson).slice(1)}`;
}

/** The frame that tells of a write. `changes` are JSON already. */
export function encodeChangedFrame(
  seq: number,
  changes: readonly string[],
  { txid, life }: { readonly txid?: string | undefined; readonly life?: string | undefined },
): string {
  const tx = txid === undefined ? "" : `,"txid":${JSON.stringify(txid)}`;
  const named = life === undefined ? "" : `,"life":${JSON.stringify(life)}`;
  return `{"type":"perdure_rows_changed","seq":${seq}${tx}${named},"changes":[${changes.join(",")}]}`;
}

/** A page. `rows` are JSON already. */
export function encodePageFrame(page: Omit<RowPageFrame, "rows" | "type">, rows: readonly string[]): string {
  const head = JSON.stringify({ type: "perdure_rows_page", ...page });
  return `${head.slice(0, -1)},"rows":[${rows.join(",")}]}`;
}
