import type { WriteReceipt } from "./row-log.ts";

/** How many names of writes are known again. */
const REMEMBERED_WRITES = 10_000;

/**
 * What became of the last writes, by their names. Counted in writes, so that all readers of a log forget the same ones at
 * the same place.
 */
export class Receipts {
  private readonly byTxid = new Map<string, WriteReceipt>();

  get(txid: string): WriteReceipt | undefined {
    return this.byTxid.get(txid);
  }

  keep(txid: string, receipt: WriteReceipt): void {
    this.byTxid.set(txid, receipt);
    if (this.byTxid.size <= REMEMBERED_WRITES) return;
    for (const oldest of this.byTxid.keys()) {
      this.byTxid.delete(oldest);
      return;
    }
  }
}

/** The receipt of a write that was applied, or `refused`, at a place of the log. */
export function receiptOf(refused: string | undefined, position: string): WriteReceipt {
  return refused === undefined ? { applied: true, position } : { applied: false, position, refused };
}
