import type { JsonObject } from "../../wire/json.ts";
import type { AppliedRowChange, RowWrite } from "../../wire/row-frames.ts";

/**
 * One ordered log of row changes, shared by many processes: the port to a backend. A Durable Stream, a Perdure agent and this
 * process's memory are each one; everything else builds on this port alone.
 *
 * What every implementation promises, and `describeRowLog` of the tests checks:
 * - All readers apply the same changes in the same order, and give each row the same versions.
 * - A write is applied whole or not at all. Its conditions are judged at its place in the order, so of two writers that want the
 *   same version one gets it.
 * - `write` resolves after this reader has applied it: who awaits it can read what it wrote.
 * - A message that cannot be understood is set aside and harms nothing behind it.
 */

/** A JSON object. */
export type RowValue = JsonObject;

/** What became of a write. */
export interface WriteReceipt {
  /** False: a condition did not hold, and nothing was changed. */
  readonly applied: boolean;
  /** Why it was refused, for people. */
  readonly refused?: string;
  /** Where the log stands behind it. */
  readonly position: string;
}

/** A row as everybody has it. */
export type ConfirmedRow = Pick<AppliedRowChange, "key" | "value" | "version" | "order">;

/** A change as it was applied. */
export interface AppliedChange extends AppliedRowChange {
  /** The write that it came with. */
  readonly txid?: string;
}

/** A message of the log that nobody can apply. */
export interface QuarantinedMessage {
  readonly position: string;
  readonly message: unknown;
  readonly reason: string;
}

/** The confirmed rows of one collection. */
export interface RowTable {
  /** On logs that read a table from when it is first asked for: when its rows are here, or why they never will be. */
  readonly ready?: Promise<void>;
  get(key: string): ConfirmedRow | undefined;
  /** In no order that means anything. */
  rows(): Iterable<ConfirmedRow>;
  readonly size: number;
  /** The row's version; of a deleted row its last one; 0 of one that never was. */
  version(key: string): number;
  /**
   * Called with the changes of each applied write, after `get` shows them. What it throws goes to the log's `onError` and stops
   * no other listener. `reset`: forget all rows, these are all there are.
   */
  subscribe(listener: (changes: readonly AppliedChange[], reset: boolean) => void): () => void;
}

/** See the top of this file. */
export interface RowLog extends AsyncDisposable {
  /** `local`, `durable-streams` or `perdure`. */
  readonly kind: string;
  /** Names the log in errors and checkpoints: a URL, a path. */
  readonly source: string;
  /** Resolves when everything that was in the log at the start is applied; rejects when it cannot be read. */
  readonly ready: Promise<void>;
  /** How far it was read: a cursor that a checkpoint may carry. Never goes back. */
  readonly position: string;
  /** The last messages that were set aside, newest last; bounded. */
  readonly quarantined: readonly QuarantinedMessage[];
  table(name: string): RowTable;
  /**
   * Resolves when the write is durable and applied here.
   * @throws PerdureError `fenced` when a later epoch of its producer was seen: stop, another runner has taken over;
   *   `disconnected` when the log was closed before the outcome was known (write again under the same `txid`).
   */
  write(write: RowWrite): Promise<WriteReceipt>;
  /** Stops reading and writing. Writes under way fail. `await using` does the same. */
  close(): Promise<void>;
}
