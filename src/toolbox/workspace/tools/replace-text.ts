import { PerdureError } from "../../../base/error.ts";

/** How many places an error names. */
const MAX_NAMED = 10;
const MAX_CANDIDATES = 3;
const MAX_SHOWN = 120;
const MAX_WORDS = 50;
/*
 * A replacement runs in one go while everybody waits. So all of it is bounded: the text before and after, the number of changes,
 * and the search for near misses.
 */
const MAX_CHARS = 4_000_000;
const MAX_REPLACEMENTS = 100_000;
const MAX_LOOSE_CHARS = 1_000_000;
const MAX_LOOSE_REPLACEMENTS = 100;
const MAX_GUESSED_CHARS = 200_000;

/** What is to be replaced in a text. */
interface Replacement {
  readonly path: string;
  readonly old: string;
  readonly now: string;
  readonly all: boolean;
}

/** A text with something replaced, and where that was. */
interface Replaced {
  readonly text: string;
  /** The lines of the new text where the replacements begin. */
  readonly lines: readonly number[];
  /** It was found only when differences in white space did not count. */
  readonly loosely: boolean;
}

interface Span {
  readonly from: number;
  readonly to: number;
}

/**
 * Replaces text that must occur exactly once, or everywhere with `all`. If it does not occur as given, white space is ignored.
 * @throws PerdureError `bad_input` that tells the model where it is if there are several, or what comes near if there is none;
 *   `limit` for texts that are too long to be changed in one go
 */
export function replaceText(text: string, replacement: Replacement): Replaced {
  const { path, old, now, all } = replacement;
  if (text.length > MAX_CHARS) throw tooLong(path, `has ${text.length} characters`);
  const exact = spansOf(text, old, MAX_REPLACEMENTS);
  const loosely = exact.length === 0;
  const most = loosely ? MAX_LOOSE_REPLACEMENTS : MAX_REPLACEMENTS;
  const spans = loosely && text.length <= MAX_LOOSE_CHARS ? looseSpansOf(text, old) : exact;
  if (spans.length === 0) throw notFound(text, replacement);
  if (spans.length > 1 && !all) throw ambiguous(text, spans, most, replacement);
  if (spans.length > most) throw tooMany(path, most);
  if (text.length + spans.length * now.length > MAX_CHARS + spans.length * old.length)
    throw tooLong(path, "would have too many characters");
  const pieces: string[] = [];
  let end = 0;
  let line = 1;
  const lines: number[] = [];
  for (const { from, to } of spans) {
    const before = text.slice(end, from);
    const given = loosely ? fitted(text, from, old, now) : now;
    line += countLines(before) - 1;
    lines.push(line);
    line += countLines(given) - 1;
    pieces.push(before, given);
    end = to;
  }
  return { text: pieces.join("") + text.slice(end), lines, loosely };
}

/** The places of a piece. One more than `most` says that there are too many. */
function spansOf(text: string, piece: string, most: number): Span[] {
  const spans: Span[] = [];
  for (let from = text.indexOf(piece); from !== -1; from = text.indexOf(piece, from + piece.length)) {
    spans.push({ from, to: from + piece.length });
    if (spans.length > most) break;
  }
  return spans;
}

/** Where `piece` is, when every run of white space is one blank. */
function looseSpansOf(text: string, piece: string): Span[] {
  const wanted = piece.trim().replaceAll(/\s+/g, " ");
  if (wanted === "") return [];
  const squeezed: string[] = [];
  /** Of each character that is left, where it was. */
  const places: number[] = [];
  let isBlank = false;
  for (let at = 0; at < text.length; at++) {
    const letter = text[at] ?? "";
    const blank = /\s/.test(letter);
    if (!blank || !isBlank) {
      squeezed.push(blank ? " " : letter);
      places.push(at);
    }
    isBlank = blank;
  }
  return spansOf(squeezed.join(""), wanted, MAX_LOOSE_REPLACEMENTS).map(({ from, to }) => ({
    from: places[from] ?? 0,
    to: (places[to - 1] ?? 0) + 1,
  }));
}

/** The new text as it belongs at a place that was found loosely: indented and ended like what is there. */
function fitted(text: string, from: number, old: string, now: string): string {
  const wanted = indentOf(old.replace(/^(?:[^\S\n]*\n)+/, ""));
  const lineStart = text.lastIndexOf("\n", from - 1) + 1;
  const before = text.slice(lineStart, from);
  const found = /^\s*$/.test(before) ? before : indentOf(before);
  const lineEnd = text.slice(from, text.indexOf("\n", from) + 1 || undefined).endsWith("\r\n") ? "\r\n" : "\n";
  return now
    .trim()
    .split(/\r?\n/)
    .map((line, at) =>
      at > 0 && line.trim() !== "" && line.startsWith(wanted) ? found + line.slice(wanted.length) : line,
    )
    .join(lineEnd);
}

function indentOf(text: string): string {
  return /^[^\S\n]*/.exec(text)?.[0] ?? "";
}

function countLines(text: string): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

function tooLong(path: string, what: string): PerdureError {
  const most = `A text of more than ${MAX_CHARS} characters cannot be edited`;
  return new PerdureError("limit", `${path} ${what}. ${most}. Nothing was changed. Use bash for it, such as sed.`);
}

function tooMany(path: string, most: number): PerdureError {
  return new PerdureError(
    "limit",
    `old_string is in ${path} more than ${most} times. Nothing was changed. Give a longer text, or use bash.`,
  );
}

function ambiguous(text: string, spans: readonly Span[], most: number, { path }: Replacement): PerdureError {
  const lines = spans.slice(0, MAX_NAMED).map(({ from }) => countLines(text.slice(0, from)));
  const more = spans.length > lines.length ? " and more" : "";
  const times = spans.length > most ? `more than ${most}` : spans.length;
  return new PerdureError(
    "bad_input",
    `old_string is in ${path} ${times} times, at lines ${lines.join(", ")}${more}. Nothing was changed. ` +
      "Give more of the text around the one you mean, or set replace_all.",
  );
}

function notFound(text: string, { path, old }: Replacement): PerdureError {
  const parts = [`old_string is not in ${path}. Nothing was changed.`];
  if (old.split("\n").every((line) => /^\s*\d+\t/.test(line)))
    parts.push("It begins with line numbers: those are not part of the file, leave them out.");
  const near = text.length > MAX_GUESSED_CHARS ? [] : nearestLines(text, old);
  if (near.length > 0) parts.push(`These lines come near:\n${near.join("\n")}`);
  parts.push("Read the file again and copy the text exactly.");
  return new PerdureError("bad_input", parts.join(" "));
}

/** The lines that share most words with the first line that is looked for. */
function nearestLines(text: string, old: string): string[] {
  const first = old.split("\n").find((line) => line.trim() !== "") ?? "";
  // Each line is compared with all of them: of a line that goes on and on, the beginning is enough.
  const wanted = new Set(wordsOf(first).slice(0, MAX_WORDS));
  if (wanted.size === 0) return [];
  const scored = text.split("\n").map((line, at) => {
    const words = new Set(wordsOf(line).slice(0, MAX_WORDS));
    const shared = [...wanted].filter((word) => words.has(word)).length;
    return { line, at, score: shared / Math.max(wanted.size, words.size, 1) };
  });
  return scored
    .filter(({ score }) => score >= 0.4)
    .sort((a, b) => b.score - a.score || a.at - b.at)
    .slice(0, MAX_CANDIDATES)
    .map(({ line, at }) => `${at + 1}\t${line.slice(0, MAX_SHOWN).toWellFormed()}`);
}

function wordsOf(line: string): string[] {
  return line.match(/[\p{L}\p{N}_]+/gu) ?? [];
}
