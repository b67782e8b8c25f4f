import type { EraseReceipt } from "perdure";

/** A word that stands nowhere else. */
export const SECRET = "Zanzibarquartz";

/** How things stand when nothing is being moved or erased. */
export interface EraseResult {
  readonly messages: number;
  /** Pictures that a message refers to and that are not there. */
  readonly lost: number;
  /** Files in which the word stands. */
  readonly secret: readonly string[];
  readonly receipts: readonly EraseReceipt[];
}
