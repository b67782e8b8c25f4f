import { charNode, type CharTest, type Cursor, foldCase, isWordChar, type Pattern, refuse } from "./syntax.ts";

const BACKSPACE = 8;

const inRange =
  (first: number, last: number): CharTest =>
  (char) =>
    char >= first && char <= last;
const either =
  (...tests: readonly CharTest[]): CharTest =>
  (char) =>
    tests.some((test) => test(char));
const text = (letters: string): CharTest => either(...Array.from(letters, (letter) => exactly(letter.charCodeAt(0))));
const exactly =
  (only: number): CharTest =>
  (char) =>
    char === only;

const lower = inRange(97, 122);
const upper = inRange(65, 90);
const digit = inRange(48, 57);

/** What `[[:name:]]` means to grep. */
const posixClasses: Readonly<Record<string, CharTest>> = {
  alpha: either(lower, upper),
  digit,
  alnum: either(lower, upper, digit),
  upper,
  lower,
  space: either(inRange(9, 13), exactly(32)),
  blank: text(" \t"),
  punct: either(inRange(33, 47), inRange(58, 64), inRange(91, 96), inRange(123, 126)),
  xdigit: either(digit, inRange(97, 102), inRange(65, 70)),
  word: isWordChar,
};

const controls: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, "0": 0 };

const isDigit: CharTest = (char) => char >= 48 && char <= 57;
const isSpace: CharTest = (char) =>
  (char >= 9 && char <= 13) ||
  char === 32 ||
  char === 0xa0 ||
  char === 0xfeff ||
  (char > 127 && /\s/u.test(letterOf(char)));

const classes: Readonly<Record<string, CharTest>> = { d: isDigit, w: isWordChar, s: isSpace };

/** Reads `[…]`. @param fold case does not matter: to what is named, not to what is left over. @throws PerdureError `bad_input` */
export function readClass(cursor: Cursor, fold = false): CharTest {
  const start = cursor.at;
  cursor.at++;
  const isNegated = cursor.source[cursor.at] === "^";
  if (isNegated) cursor.at++;
  const tests: CharTest[] = [];
  for (let isFirst = true; ; isFirst = false) {
    const letter = cursor.source[cursor.at];
    if (letter === undefined) {
      cursor.at = start;
      throw refuse(cursor, "a [ is never closed; write \\[ for the character itself");
    }
    // JavaScript takes [] for nothing at all; everybody else for the beginning of a class with a bracket in it.
    if (letter === "]" && !isFirst) break;
    tests.push(readItem(cursor));
  }
  cursor.at++;
  const named = either(...tests);
  const test = fold ? foldCase(named) : named;
  return isNegated ? (char) => !test(char) : test;
}

function readItem(cursor: Cursor): CharTest {
  const posix = /^\[:(\w+):\]/.exec(cursor.source.slice(cursor.at, cursor.at + 20));
  if (posix?.[1] !== undefined) {
    const test = posixClasses[posix[1]];
    if (test === undefined)
      throw refuse(cursor, `${posix[0]} is not known; there are ${Object.keys(posixClasses).join(", ")}`);
    cursor.at += posix[0].length;
    return test;
  }
  const first = readMember(cursor);
  const isRange = cursor.source[cursor.at] === "-" && !["]", undefined].includes(cursor.source[cursor.at + 1]);
  if (typeof first !== "number") return first;
  if (!isRange) return exactly(first);
  cursor.at++;
  const last = readMember(cursor);
  if (typeof last !== "number") return either(exactly(first), text("-"), last);
  if (last < first) throw refuse(cursor, "a range in […] ends before it begins");
  return inRange(first, last);
}

function readMember(cursor: Cursor): number | CharTest {
  if (cursor.source[cursor.at] !== "\\") {
    const char = cursor.source.codePointAt(cursor.at) ?? 0;
    cursor.at += char > 0xffff ? 2 : 1;
    return char;
  }
  if (cursor.source[cursor.at + 1] === "b") {
    cursor.at += 2;
    return BACKSPACE;
  }
  return readCharEscape(cursor);
}

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
function readCharEscape(cursor: Cursor): number | CharTest {
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
