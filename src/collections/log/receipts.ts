import { PerdureError } from "../../base/error.ts";
import type { WriteReceipt } from "./row-log.ts";
import type { RowChange } from "../../wire/row-frames.ts";

/** How many names of writes are known again. */
const REMEMBERED_WRITES = 10_000;

/** What became of a write, and what it wrote. */
interface Remembered {
  readonly receipt: WriteReceipt;
  readonly content: string;
}

/** Outcomes of the last writes, by name. Counted in writes, so all readers forget the same ones at the same place. */
export class Receipts {
  readonly #byTxid = new Map<string, Remembered>();

  /** @throws PerdureError `conflict` when the name stands for a write of something else. */
  get(txid: string, content: string): WriteReceipt | undefined {
    const known = this.#byTxid.get(txid);
    if (known !== undefined && known.content !== content) throw usedAgain(txid);
    return known?.receipt;
  }

  has(txid: string): boolean {
    return this.#byTxid.has(txid);
  }

  /** Whether the name stands for a write of this. */
  isOf(txid: string, content: string): boolean {
    return this.#byTxid.get(txid)?.content === content;
  }

  keep(txid: string, content: string, receipt: WriteReceipt): void {
    this.#byTxid.set(txid, { receipt, content });
    if (this.#byTxid.size <= REMEMBERED_WRITES) return;
    for (const oldest of this.#byTxid.keys()) {
      this.#byTxid.delete(oldest);
      return;
    }
  }
}

/** The receipt of a write that was applied, or `refused`, at a place of the log. */
export function receiptOf(refused: string | undefined, position: string): WriteReceipt {
  return refused === undefined ? { applied: true, position } : { applied: false, position, refused };
}

/**
 * What a write writes, to tell it from another of the same name. Ignores conditions, which differ after a takeover, and takes an
 * update by its row only: its content follows from what it found, which differs on a retry.
 */
export function contentOf(changes: readonly RowChange[]): string {
  const parts = changes.map(({ table, key, operation, value }) => [
    table,
    key,
    operation,
    operation === "delete" || operation === "update" ? null : value,
  ]);
  return fingerprint(JSON.stringify(parts, sorted));
}

/** The error of a write under a name that stands for another one. */
export function usedAgain(txid: string): PerdureError {
  return new PerdureError(
    "conflict",
    `The transaction id ${JSON.stringify(txid)} already stands for another write. Nothing was changed. Give each write its own id.`,
  );
}

/** Tells texts apart, in little space, that nobody has chosen to be alike. */
function fingerprint(text: string): string {
  let a = 0x811c9dc5;
  let b = 0x9e3779b9;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ unit ^ (a >>> 15), 0x85ebca6b);
  }
  return `${text.length}-${(a >>> 0).toString(16)}-${(b >>> 0).toString(16)}`;
}

/** Objects with their keys in one order, whoever made them. */
export function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
