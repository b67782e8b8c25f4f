import { type Cursor, refuse } from "./cursor.ts";
import { charNode, type CharTest, isWordChar, type Pattern } from "./syntax.ts";

const controls: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, "0": 0 };

const isDigit: CharTest = (char) => char >= 48 && char <= 57;
const isSpace: CharTest = (char) =>
  (char >= 9 && char <= 13) ||
  char === 32 ||
  char === 0xa0 ||
  char === 0xfeff ||
  (char > 127 && /\s/u.test(letterOf(char)));

const classes: Readonly<Record<string, CharTest>> = { d: isDigit, w: isWordChar, s: isSpace };

/** Reads what begins with a backslash. @throws PerdureError `bad_input` */
export function readEscape(cursor: Cursor): Pattern {
  const start = cursor.at;
  const letter = cursor.source[start + 1];
  if (letter === undefined) throw refuse(cursor, "it ends with a backslash; write \\\\ for the character itself");
  if (letter === "b" || letter === "B") {
    cursor.at += 2;
    return { type: "assert", what: letter === "b" ? "boundary" : "inside" };
  }
  if (letter === "A" || letter === "z" || letter === "Z") {
    cursor.at += 2;
    return { type: "assert", what: letter === "A" ? "start" : "end" };
  }
  if (/[1-9]/.test(letter) || letter === "k") throw refuse(cursor, "references to groups are not supported");
  const test = readCharEscape(cursor);
  return typeof test === "number" ? charNode(test) : { type: "char", test };
}

/** Reads what stands for one character, or one of several; also inside of brackets. */
export function readCharEscape(cursor: Cursor): number | CharTest {
  const rest = cursor.source.slice(cursor.at + 1, cursor.at + 60);
  const letter = rest[0] ?? "";
  const named = classes[letter.toLowerCase()];
  if (named !== undefined) {
    cursor.at += 2;
    return letter === letter.toLowerCase() ? named : (char) => !named(char);
  }
  const code = /^x([0-9a-fA-F]{2})|^u([0-9a-fA-F]{4})|^u\{([0-9a-fA-F]{1,6})\}/.exec(rest);
  const digits = code?.[1] ?? code?.[2] ?? code?.[3];
  if (code !== null && digits !== undefined) {
    cursor.at += 1 + code[0].length;
    return Number.parseInt(digits, 16);
  }
  const property = /^[pP]\{([\w=]+)\}/.exec(rest);
  if (property?.[1] !== undefined) {
    const test = propertyTest(cursor, property[1], letter === "P");
    cursor.at += 1 + property[0].length;
    return test;
  }
  const control = controls[letter];
  if (control === undefined && /[A-Za-z0-9]/.test(letter)) throw refuse(cursor, `\\${letter} is not known`);
  const char = rest.codePointAt(0) ?? 0;
  cursor.at += 1 + letterOf(char).length;
  return control ?? char;
}

function propertyTest(cursor: Cursor, name: string, isNegated: boolean): CharTest {
  try {
    // One character at a time: there is nothing to go back in.
    const property = new RegExp(`^\\p{${name}}$`, "u");
    return (char) => property.test(letterOf(char)) !== isNegated;
  } catch {
    throw refuse(cursor, `there is no property \\p{${name}}; try \\p{L} for letters or \\p{N} for numbers`);
  }
}

function letterOf(char: number): string {
  return String.fromCodePoint(char);
}
