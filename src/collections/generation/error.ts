import { PerdureError } from "../../base/error.ts";
import type { PerdureErrorCode } from "../../base/error.ts";

/** What there was of an answer that did not come to its end. */
export interface PartialAnswer {
  /** The text so far. It is no answer. */
  readonly content: string;
  /** How many chunks were stored. */
  readonly chunks: number;
}

/**
 * An answer that did not come to its end. `code`: `cancelled` (its signal was aborted), `model_failed` (the model's
 * server reported an error or was cut off; `cause` if there is one) or `fenced` (somebody else has the work now).
 */
export class GenerationError extends PerdureError {
  /** What was stored of it before. */
  readonly partial: PartialAnswer;

  constructor(code: PerdureErrorCode, message: string, partial: PartialAnswer, options?: { cause?: unknown }) {
    super(code, message, options);
    this.partial = partial;
  }
}
