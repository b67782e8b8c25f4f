import { tryParseJson } from "../base/json.ts";

const numberStart = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/;
const word = /[-+.\w]+/y;
const literals = ["true", "false", "null"];

/**
 * The value that the beginning of a JSON text stands for: what is open is closed, a key without a value left out. @returns
 * `undefined` when there is no value yet, or when the text is not the beginning of JSON.
 */
export function parsePartialJson(text: string): unknown {
  return tryParseJson(text) ?? tryParseJson(closeJson(text));
}

/** Completes the beginning of a JSON text. The result of something that is not JSON is not JSON either. */
function closeJson(text: string): string {
  const open: { close: "}" | "]"; atKey: boolean }[] = [];
  // Invariant: `text.slice(0, cut) + tail`, plus the closers of `open`, is complete.
  let cut = 0;
  let tail = "";
  let at = 0;
  while (at < text.length) {
    const char = text.charAt(at);
    const top = open.at(-1);
    if (char === "{" || char === "[") {
      open.push({ close: char === "{" ? "}" : "]", atKey: char === "{" });
      cut = ++at;
    } else if (char === "}" || char === "]") {
      open.pop();
      cut = ++at;
    } else if (char === '"') {
      const string = scanString(text, at);
      const isKey = top?.atKey === true;
      if (!isKey) {
        cut = string.end;
        if (!string.closed) tail = '"';
      }
      if (!string.closed) break;
      at = string.end;
    } else if (wordEnd(text, at) > at) {
      const end = wordEnd(text, at);
      const token = text.slice(at, end);
      if (end < text.length) {
        cut = end;
      } else {
        const literal = literals.find((name) => name.startsWith(token));
        const digits = numberStart.exec(token)?.[0].length ?? 0;
        if (literal !== undefined) {
          cut = end;
          tail = literal.slice(token.length);
        } else if (digits > 0) {
          cut = at + digits;
        }
      }
      at = end;
    } else {
      if (top !== undefined && char === ",") top.atKey = top.close === "}";
      if (top !== undefined && char === ":") top.atKey = false;
      at += 1;
    }
  }
  const closers = open.map((frame) => frame.close).reverse();
  return text.slice(0, cut) + tail + closers.join("");
}

/** Where the number or literal that starts at `at` ends; `at` itself when there is none. */
function wordEnd(text: string, at: number): number {
  word.lastIndex = at;
  return word.test(text) ? word.lastIndex : at;
}

/** Where the string that opens at `start` ends; when it is cut, where its last whole character does. */
function scanString(text: string, start: number): { end: number; closed: boolean } {
  let at = start + 1;
  while (at < text.length) {
    const char = text.charAt(at);
    if (char === '"') return { end: at + 1, closed: true };
    const width = char !== "\\" ? 1 : text.charAt(at + 1) === "u" ? 6 : 2;
    if (at + width > text.length) break;
    at += width;
  }
  return { end: at, closed: false };
}
