import { isRecord } from "../../../base/json.ts";
import { PerdureError } from "../../../base/error.ts";
import type { RowValue } from "../row-log.ts";
import type { RowChange, RowCondition, RowWrite } from "../../../wire/row-frames.ts";

/**
 * Rows as events of the State Protocol: `{ type, key, value, headers: { operation, txid } }`. What a write of ours
 * needs beyond that is in the header `perdure`, which other readers do not look at: they see one plain event for each
 * row. A write of several rows is as many events in a row, with the same txid and a number each.
 */
interface PerdureHeader {
  /** The event's number in its write, from 1. */
  readonly part: number;
  readonly of: number;
  /** The conditions of the write, with its first event. */
  readonly when?: readonly RowCondition[];
}

/** What a message of the stream means. */
export type StreamEvent =
  /** A write of ours: judged, and counted once under its name. */
  | { readonly kind: "write"; readonly write: RowWrite & { readonly txid: string } }
  /** A change that somebody else has written: it holds as far as it can. */
  | { readonly kind: "plain"; readonly change: RowChange; readonly txid?: string }
  /** All rows are gone. */
  | { readonly kind: "reset" }
  /** Snapshots begin and end: for readers that do not want the whole stream. */
  | { readonly kind: "hint" }
  | { readonly kind: "bad"; readonly message: unknown; readonly reason: string };

/**
 * The events of a write, each as JSON.
 * @throws PerdureError `bad_input` when a row cannot be JSON.
 */
export function encodeWrite(write: RowWrite, txid: string): string[] {
  const of = write.changes.length;
  return write.changes.map(({ table, key, operation, value }, index) => {
    const perdure: PerdureHeader = {
      part: index + 1,
      of,
      ...(index === 0 && write.when !== undefined && write.when.length > 0 ? { when: write.when } : {}),
    };
    const headers = { operation, txid, perdure };
    try {
      return JSON.stringify({ type: table, key, ...(operation === "delete" ? {} : { value }), headers });
    } catch (error) {
      throw new PerdureError("bad_input", `The row "${key}" of "${table}" cannot be written as JSON.`, {
        cause: error,
      });
    }
  });
}

interface Part {
  readonly message: unknown;
  readonly change: RowChange;
}

/** A write whose last events have not come yet. */
interface Group {
  readonly txid: string;
  readonly of: number;
  readonly when?: readonly RowCondition[];
  readonly parts: Part[];
}

/** Reads a stream's messages in order. The result depends on nothing else, not even batching: all readers agree on each write. */
export class EventReader {
  #group: Group | undefined;

  /** Whether the last message was the beginning of a write that is not complete. */
  get incomplete(): boolean {
    return this.#group !== undefined;
  }

  read(message: unknown): StreamEvent[] {
    const parsed = parse(message);
    if (parsed.kind !== "part") return [...this.#abandon(), parsed];
    const { header, txid, change } = parsed;
    const group = this.#group;
    if (
      group !== undefined &&
      group.txid === txid &&
      header.of === group.of &&
      header.part === group.parts.length + 1
    ) {
      group.parts.push({ message, change });
      return this.#completed();
    }
    const given = this.#abandon();
    if (header.part !== 1) return [...given, bad(message, "it is part of a write whose beginning is missing")];
    this.#group = {
      txid,
      of: header.of,
      parts: [{ message, change }],
      ...(header.when === undefined ? {} : { when: header.when }),
    };
    return [...given, ...this.#completed()];
  }

  #completed(): StreamEvent[] {
    const group = this.#group;
    if (group === undefined || group.parts.length < group.of) return [];
    this.#group = undefined;
    const { txid, when, parts } = group;
    const changes = parts.map(({ change }) => change);
    return [{ kind: "write", write: { changes, txid, ...(when === undefined ? {} : { when }) } }];
  }

  #abandon(): StreamEvent[] {
    const parts = this.#group?.parts ?? [];
    this.#group = undefined;
    return parts.map(({ message }) => bad(message, "it is part of a write whose end is missing"));
  }
}

type Parsed =
  | Exclude<StreamEvent, { kind: "write" }>
  | { readonly kind: "part"; readonly header: PerdureHeader; readonly txid: string; readonly change: RowChange };

function parse(message: unknown): Parsed {
  if (!isRecord(message)) return bad(message, "it is no object");
  const { type, key, value, headers } = message;
  if (!isRecord(headers)) return bad(message, "it has no headers");
  if (headers.control !== undefined) return parseControl(message, headers.control);
  if (typeof type !== "string" || type === "") return bad(message, "it has no type");
  if (typeof key !== "string" || key === "") return bad(message, "it has no key");
  const { operation, txid, perdure } = headers;
  if (operation !== "insert" && operation !== "update" && operation !== "upsert" && operation !== "delete") {
    return bad(message, "its operation is unknown");
  }
  if (operation !== "delete" && !isRecord(value)) return bad(message, "its value is no object");
  const row = { table: type, key, ...(operation === "delete" ? {} : { value: value as RowValue }) };
  if (perdure === undefined) {
    const change: RowChange = { ...row, operation: operation === "delete" ? "delete" : "upsert" };
    return { kind: "plain", change, ...(typeof txid === "string" ? { txid } : {}) };
  }
  if (typeof txid !== "string" || txid === "" || !isHeader(perdure)) {
    return bad(message, "its Perdure header is malformed");
  }
  return { kind: "part", header: perdure, txid, change: { ...row, operation } };
}

function parseControl(message: unknown, control: unknown): Parsed {
  if (control === "reset") return { kind: "reset" };
  if (control === "snapshot-start" || control === "snapshot-end") return { kind: "hint" };
  return bad(message, "its control is unknown");
}

function isHeader(value: unknown): value is PerdureHeader {
  if (!isRecord(value)) return false;
  const { part, of, when } = value;
  if (!isCount(part) || !isCount(of) || part > of) return false;
  return when === undefined || (part === 1 && Array.isArray(when) && when.every(isCondition));
}

function isCondition(value: unknown): value is RowCondition {
  if (!isRecord(value)) return false;
  const { table, key, version } = value;
  return typeof table === "string" && typeof key === "string" && (version === 0 || isCount(version));
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}

function bad(message: unknown, reason: string): { kind: "bad"; message: unknown; reason: string } {
  return { kind: "bad", message, reason };
}
