import type { PerdureError } from "../../../base/error.ts";
import type { AppliedChange, QuarantinedMessage, RowTable, WriteReceipt } from "../row-log.ts";
import type { RowChange, RowWrite } from "../../../wire/row-frames.ts";
import { contentOf, receiptOf, Receipts, usedAgain } from "../receipts.ts";
import { RowState } from "../row-state.ts";
import { EventReader, type StreamEvent } from "./state-events.ts";

/** How many messages that cannot be applied are kept. */
const KEPT_QUARANTINED = 100;

/** Where a reader starts. */
export const START = "-1";

/** Who wants to know. None of these may throw. */
interface StreamStateEvents {
  onError(error: unknown): void;
  onQuarantine(message: QuarantinedMessage): void;
  /** A write was applied or refused, and the listeners of its tables were told. */
  onOutcome(txid: string, content: string, receipt: WriteReceipt): void;
  /** A write was set aside, since its name stands for another one. */
  onConflict(txid: string, content: string, error: PerdureError): void;
}

/** What a stream adds up to, as far as it was read. */
export class StreamState {
  /** Behind the last batch that was read whole, with no write left open. */
  position = START;
  readonly quarantined: QuarantinedMessage[] = [];
  readonly #rows: RowState;
  readonly #reader = new EventReader();
  /** Asked for, or with a row at some time. */
  readonly #tables = new Set<string>();
  readonly #receipts = new Receipts();
  readonly #events: StreamStateEvents;
  #live = false;

  constructor(events: StreamStateEvents) {
    this.#events = events;
    this.#rows = new RowState((error) => events.onError(error));
  }

  table(name: string): RowTable {
    this.#tables.add(name);
    return this.#rows.table(name);
  }

  /**
   * What became of the write of this name, if it was read and is not forgotten.
   * @throws PerdureError `conflict` when the name stands for a write of something else.
   */
  receipt(txid: string, content: string): WriteReceipt | undefined {
    return this.#receipts.get(txid, content);
  }

  /** Applies a batch of messages; `next` is where the stream goes on behind it. */
  read(messages: readonly unknown[], next: string): void {
    const events = messages.flatMap((message) => this.#reader.read(message));
    if (!this.#reader.incomplete) this.position = next;
    for (const event of events) this.#take(event);
  }

  /** The first state is complete: from now on listeners hear of each write. */
  goLive(): void {
    this.#live = true;
    for (const name of this.#tables) this.#rows.emitTable(name, this.#allRows(name), true);
  }

  #take(event: StreamEvent): void {
    switch (event.kind) {
      case "write":
        return this.#judge(event.write);
      case "plain":
        return this.#tolerate(event.change, event.txid);
      case "hint":
        return;
      case "reset":
        // Deleted and not forgotten: a condition of before must not hold again.
        return this.#emit(this.#rows.apply({ changes: this.#deletions() }).changes);
      case "bad":
        return this.#setAside({ position: this.position, message: event.message, reason: event.reason });
    }
  }

  #judge(write: RowWrite & { readonly txid: string }): void {
    const { txid } = write;
    const content = contentOf(write.changes);
    if (this.#receipts.has(txid)) return this.#repeated(txid, content, write);
    const { changes, refused } = this.#rows.apply(write);
    const receipt = receiptOf(refused, this.position);
    this.#receipts.keep(txid, content, receipt);
    this.#emit(changes);
    this.#events.onOutcome(txid, content, receipt);
  }

  /** The same write again counts once; another one under its name is set aside, by all readers alike. */
  #repeated(txid: string, content: string, write: RowWrite): void {
    if (this.#receipts.isOf(txid, content)) return;
    this.#setAside({ position: this.position, message: write, reason: "its transaction id stands for another write" });
    this.#events.onConflict(txid, content, usedAgain(txid));
  }

  #tolerate(change: RowChange, txid: string | undefined): void {
    if (change.operation === "delete" && this.#rows.table(change.table).get(change.key) === undefined) return;
    this.#emit(this.#rows.apply({ changes: [change], ...(txid === undefined ? {} : { txid }) }).changes);
  }

  #deletions(): RowChange[] {
    return [...this.#tables].flatMap((table) =>
      [...this.#rows.table(table).rows()].map(({ key }): RowChange => ({ table, key, operation: "delete" })),
    );
  }

  #emit(changes: readonly AppliedChange[]): void {
    for (const { table } of changes) this.#tables.add(table);
    if (this.#live) this.#rows.emit(changes);
  }

  #setAside(message: QuarantinedMessage): void {
    this.quarantined.push(message);
    if (this.quarantined.length > KEPT_QUARANTINED) this.quarantined.shift();
    this.#events.onQuarantine(message);
  }

  #allRows(table: string): AppliedChange[] {
    return [...this.#rows.table(table).rows()].map((row) => ({ ...row, table, operation: "insert" }));
  }
}
