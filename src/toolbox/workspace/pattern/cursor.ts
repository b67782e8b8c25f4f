import { PerdureError } from "../../../base/error.ts";

/** Where one is in the source of a pattern. */
export interface Cursor {
  readonly source: string;
  at: number;
}

/** A pattern that cannot be used, in words for whoever wrote it. */
export function refuse({ source, at }: Cursor, what: string): PerdureError {
  return new PerdureError(
    "bad_input",
    `The pattern ${JSON.stringify(source)} cannot be used: ${what} (at character ${at + 1}).`,
  );
}
