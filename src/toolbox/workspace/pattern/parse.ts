import { PerdureError } from "../../../base/error.ts";
import { readClass, readEscape } from "./char-class.ts";
import { charNode, type CharTest, type Cursor, foldCase, type Pattern, refuse } from "./syntax.ts";
import { createMatcher, type Matcher } from "./matcher.ts";

export const MAX_PATTERN = 1_000;
const MAX_DEPTH = 100;
const MAX_COUNT = 1_000;
const NEW_LINE = 10;

const PLAIN = /^[^\\^$.*+?()[\]{}|]+$/;

/**
 * Reads a regular expression as JavaScript writes it, but for what cannot be matched in one walk: lookahead, lookbehind
 * and references to groups are refused. `(?i)` at the beginning means that case does not matter.
 * @throws PerdureError `bad_input` that says what is wrong and where
 */
export function parsePattern(source: string, ignoreCase = false): Pattern {
  if (source.length > MAX_PATTERN)
    throw new PerdureError(
      "bad_input",
      `The pattern has ${source.length} characters; at most ${MAX_PATTERN} are allowed.`,
    );
  const cursor: Cursor = { source, at: 0 };
  let fold = ignoreCase;
  if (source.startsWith("(?i)")) {
    fold = true;
    cursor.at = 4;
  }
  const pattern = readAlternatives(cursor, fold, 0);
  if (cursor.at < source.length) throw refuse(cursor, "there is a ) without a (; write \\) for the character itself");
  return pattern;
}

function readAlternatives(cursor: Cursor, fold: boolean, depth: number): Pattern {
  if (depth > MAX_DEPTH) throw refuse(cursor, "groups are nested too deeply");
  const parts = [readSequence(cursor, fold, depth)];
  while (cursor.source[cursor.at] === "|") {
    cursor.at++;
    parts.push(readSequence(cursor, fold, depth));
  }
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only : { type: "any", parts };
}

function readSequence(cursor: Cursor, fold: boolean, depth: number): Pattern {
  const parts: Pattern[] = [];
  while (cursor.at < cursor.source.length) {
    const letter = cursor.source[cursor.at];
    if (letter === "|" || letter === ")") break;
    parts.push(readCount(cursor, readOne(cursor, fold, depth)));
  }
  return { type: "all", parts };
}

function readOne(cursor: Cursor, fold: boolean, depth: number): Pattern {
  const char = cursor.source.codePointAt(cursor.at) ?? 0;
  const letter = String.fromCodePoint(char);
  const one = (test: CharTest): Pattern => ({ type: "char", test: fold ? foldCase(test) : test });
  if (letter === "(") return readGroup(cursor, fold, depth);
  if (letter === "[") return { type: "char", test: readClass(cursor, fold) };
  if (letter === "*" || letter === "+" || letter === "?")
    throw refuse(cursor, `there is nothing before ${letter} to repeat`);
  if (letter === "\\") {
    const escaped = readEscape(cursor);
    return escaped.type === "char" ? one(escaped.test) : escaped;
  }
  cursor.at += letter.length;
  if (letter === "^") return { type: "assert", what: "start" };
  if (letter === "$") return { type: "assert", what: "end" };
  if (letter === ".") return { type: "char", test: (other) => other !== NEW_LINE };
  return fold ? one((other) => other === char) : charNode(char);
}

function readGroup(cursor: Cursor, fold: boolean, depth: number): Pattern {
  const start = cursor.at;
  const kind = /^\((?:\?(?:[:=!]|<[=!]|<\w+>|[^]?))?/.exec(cursor.source.slice(start, start + 80))?.[0] ?? "(";
  if (/^\(\?<?[=!]/.test(kind))
    throw refuse(
      cursor,
      "lookahead and lookbehind are not supported; search for a simpler pattern and look at the lines",
    );
  if (kind !== "(" && kind !== "(?:" && !/^\(\?<\w+>$/.test(kind))
    throw refuse(cursor, `${kind} is not supported; (?i) may stand at the beginning`);
  cursor.at += kind.length;
  const inner = readAlternatives(cursor, fold, depth + 1);
  if (cursor.source[cursor.at] !== ")") {
    cursor.at = start;
    throw refuse(cursor, "a ( is never closed; write \\( for the character itself");
  }
  cursor.at++;
  return inner;
}

function readCount(cursor: Cursor, part: Pattern): Pattern {
  const found = /^(?:[*+?]|\{(\d{1,6})(,(\d{1,6})?)?\})/.exec(cursor.source.slice(cursor.at, cursor.at + 20));
  if (found === null) return part;
  if (part.type === "assert") throw refuse(cursor, "^, $ and \\b cannot be repeated");
  const [mark, low, comma, high] = found;
  const least = low === undefined ? (mark === "+" ? 1 : 0) : Number(low);
  const endless = mark === "*" || mark === "+" || (comma !== undefined && high === undefined);
  const most = endless ? Number.POSITIVE_INFINITY : high !== undefined ? Number(high) : mark === "?" ? 1 : least;
  if (most < least) throw refuse(cursor, `in ${mark} the second number is smaller than the first`);
  if (Math.max(least, endless ? 0 : most) > MAX_COUNT) throw refuse(cursor, `counts may be at most ${MAX_COUNT}`);
  cursor.at += mark.length;
  // Which of several matches is taken makes no difference to whether there is one.
  if (cursor.source[cursor.at] === "?") cursor.at++;
  if (/^[*+?]/.test(cursor.source.slice(cursor.at))) throw refuse(cursor, "two counts follow each other");
  return { type: "repeat", part, min: least, max: most };
}

/**
 * A regular expression that is safe to take from anybody: it is matched in one walk over the text, so no pattern can take
 * long. That is why there is no lookahead, no lookbehind and no `\1`.
 * @throws PerdureError `bad_input` or `limit`, in words for whoever wrote the pattern
 */
export function compilePattern(source: string, options: { readonly ignoreCase?: boolean } = {}): Matcher {
  const { ignoreCase = false } = options;
  if (!ignoreCase && PLAIN.test(source)) return { test: (text) => text.includes(source) };
  return createMatcher(parsePattern(source, ignoreCase));
}

/** Finds a text as it is. */
export function compileText(text: string, options: { readonly ignoreCase?: boolean } = {}): Matcher {
  if (options.ignoreCase !== true) return { test: (line) => line.includes(text) };
  return createMatcher(parsePattern(text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"), true));
}
