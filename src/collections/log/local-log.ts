import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import type { QuarantinedMessage, RowLog, RowTable, WriteReceipt } from "./row-log.ts";
import type { RowProducer, RowWrite } from "../../wire/row-frames.ts";
import { reporter } from "../retry.ts";
import { contentOf, receiptOf, Receipts } from "./receipts.ts";
import { RowState } from "./row-state.ts";
import { asJson, requireWrite } from "./row-write.ts";

/** A log in this process's memory, for one process, tests or drafts. Promises what others do, but ends with the process. */
export function openLocalLog(
  options: { readonly name?: string; readonly onError?: (error: unknown) => void } = {},
): RowLog {
  return new LocalLog(options.name ?? newId("local"), reporter(options.onError));
}

class LocalLog implements RowLog {
  readonly kind = "local";
  readonly source: string;
  readonly ready = Promise.resolve();
  readonly quarantined: readonly QuarantinedMessage[] = [];
  readonly #state: RowState;
  readonly #epochs = new Map<string, number>();
  readonly #receipts = new Receipts();
  #count = 0;
  #closed = false;

  constructor(source: string, onError: (error: unknown) => void) {
    this.source = source;
    this.#state = new RowState(onError);
  }

  get position(): string {
    return String(this.#count).padStart(16, "0");
  }

  table(name: string): RowTable {
    return this.#state.table(name);
  }

  async write(write: RowWrite): Promise<WriteReceipt> {
    requireWrite(write);
    // A copy, so that nobody changes a row by changing what it was made from; and what other logs would make of it.
    const copy = JSON.parse(asJson(write)) as RowWrite;
    // As everywhere else, the outcome comes later than the call: code that only works at once shall fail here too.
    await Promise.resolve();
    if (this.#closed) throw new PerdureError("disconnected", `The log "${this.source}" is closed.`);
    const content = contentOf(copy.changes);
    const known = write.txid === undefined ? undefined : this.#receipts.get(write.txid, content);
    if (known !== undefined) return known;
    if (write.producer !== undefined) this.#admit(write.producer);
    const { changes, refused } = this.#state.apply(copy);
    this.#count++;
    const receipt = receiptOf(refused, this.position);
    if (write.txid !== undefined) this.#receipts.keep(write.txid, content, receipt);
    this.#state.emit(changes);
    return receipt;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  #admit({ id, epoch }: RowProducer): void {
    const latest = this.#epochs.get(id) ?? epoch;
    if (epoch < latest) throw fenced(id, epoch, latest);
    this.#epochs.set(id, epoch);
  }
}

/** The error of a writer that was overtaken. */
export function fenced(id: string, epoch: number, latest?: number): PerdureError {
  const later = latest === undefined ? "a later one" : `epoch ${latest}`;
  return new PerdureError(
    "fenced",
    `The writer "${id}" of epoch ${epoch} was overtaken by ${later}: another runner now has its work. Stop this one.`,
  );
}
