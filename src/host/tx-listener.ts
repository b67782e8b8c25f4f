import type { PerdureError } from "../base/error.ts";

/** Told what becomes of transactions, so that what was sent inside of one shares its fate. */
export interface TxListener {
  /** Why nothing may be written now; undefined when it may. */
  refusal(): PerdureError | undefined;
  /** A (nested) transaction begins; the returned mark names this moment. */
  mark(): number;
  /** Everything since `mark` was undone. */
  rolledBack(mark: number): void;
  /** The outermost transaction is committed. */
  committed(): void;
  /** The first row ever of this agent is about to be stored. What it returns is durable before the row is. Must not throw. */
  created?(): Promise<void> | undefined;
}
