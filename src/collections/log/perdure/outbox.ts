import { PerdureError } from "../../../base/error.ts";
import { newId } from "../../../base/id.ts";
import {
  MAX_ROW_CHANGES,
  MAX_ROW_WRITE_LENGTH,
  type RowErrorFrame,
  type RowReceiptFrame,
} from "../../../wire/row-frames.ts";
import type { RowWrite } from "../row-log.ts";
import { asJson } from "../row-write.ts";
import { toldError } from "./agent-socket.ts";

interface Unanswered {
  readonly frame: string;
  readonly outcome: PromiseWithResolvers<RowReceiptFrame>;
}

/** Writes that the agent has not answered, in their order. Each is sent on every connection until it is: they have names. */
export class Outbox {
  private readonly unanswered = new Map<string, Unanswered>();

  /**
   * Keeps a write until it is answered.
   * @returns its frame, when it is new, and its outcome
   * @throws PerdureError `limit` or `too_large` for one that no agent takes, `bad_input` for what JSON cannot hold.
   */
  add(write: RowWrite): { readonly frame?: string; readonly outcome: Promise<RowReceiptFrame> } {
    const { txid = newId(), changes, when, producer } = write;
    const known = this.unanswered.get(txid);
    if (known !== undefined) return { outcome: known.outcome.promise };
    if (changes.length > MAX_ROW_CHANGES || (when?.length ?? 0) > MAX_ROW_CHANGES) {
      throw new PerdureError("limit", `A write may have at most ${MAX_ROW_CHANGES} changes. Make several of it.`);
    }
    const frame = asJson({ type: "perdure_rows_write", txid, changes, when, producer });
    if (frame.length > MAX_ROW_WRITE_LENGTH) {
      throw new PerdureError(
        "too_large",
        `A write may have at most ${MAX_ROW_WRITE_LENGTH} characters; this one has ${frame.length}. Make several of it.`,
      );
    }
    const outcome = Promise.withResolvers<RowReceiptFrame>();
    this.unanswered.set(txid, { frame, outcome });
    return { frame, outcome: outcome.promise };
  }

  /** All that is to be sent on a new connection. */
  frames(): string[] {
    return [...this.unanswered.values()].map(({ frame }) => frame);
  }

  receipt(frame: RowReceiptFrame): void {
    this.take(frame.txid)?.outcome.resolve(frame);
  }

  error({ txid, error }: RowErrorFrame): void {
    if (txid !== undefined) this.take(txid)?.outcome.reject(toldError(error));
  }

  fail(error: PerdureError): void {
    for (const { outcome } of this.unanswered.values()) outcome.reject(error);
    this.unanswered.clear();
  }

  private take(txid: string): Unanswered | undefined {
    const one = this.unanswered.get(txid);
    this.unanswered.delete(txid);
    return one;
  }
}
