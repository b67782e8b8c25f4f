import { readCharEscape } from "./escape.ts";
import { type Cursor, refuse } from "./cursor.ts";
import { type CharTest, foldCase, isWordChar } from "./syntax.ts";

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
