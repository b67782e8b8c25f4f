import { PerdureError } from "../../../base/error.ts";

/** Whether a character, given as its code point, is meant. */
export type CharTest = (char: number) => boolean;

/** What a pattern says. Only what can be matched in one walk over the text: nothing that refers to what was matched. */
export type Pattern =
  | { readonly type: "char"; readonly test: CharTest }
  | { readonly type: "all"; readonly parts: readonly Pattern[] }
  | { readonly type: "any"; readonly parts: readonly Pattern[] }
  | { readonly type: "repeat"; readonly part: Pattern; readonly min: number; readonly max: number }
  | { readonly type: "assert"; readonly what: Assertion };

/** What must be so between two characters. */
export type Assertion = "start" | "end" | "boundary" | "inside";

/** Where one is in the source of a pattern. */
export interface Cursor {
  readonly source: string;
  at: number;
}

/** Exactly this character. */
export function charNode(char: number): Pattern {
  return { type: "char", test: (other) => other === char };
}

/** The whole text must be meant, not a piece of it. */
export function whole(pattern: Pattern): Pattern {
  return { type: "all", parts: [{ type: "assert", what: "start" }, pattern, { type: "assert", what: "end" }] };
}

/** Letters, digits and the underscore. */
export function isWordChar(char: number): boolean {
  return (char >= 48 && char <= 57) || (char >= 65 && char <= 90) || char === 95 || (char >= 97 && char <= 122);
}

/** A test that does not tell capital letters from small ones. */
export function foldCase(test: CharTest): CharTest {
  return (char) => {
    if (test(char)) return true;
    const letter = String.fromCodePoint(char);
    return [letter.toLowerCase(), letter.toUpperCase()].some((other) => {
      const code = other.codePointAt(0);
      return code !== undefined && code !== char && String.fromCodePoint(code) === other && test(code);
    });
  };
}

/** A pattern that cannot be used, in words for whoever wrote it. */
export function refuse({ source, at }: Cursor, what: string): PerdureError {
  return new PerdureError(
    "bad_input",
    `The pattern ${JSON.stringify(source)} cannot be used: ${what} (at character ${at + 1}).`,
  );
}
