/**
 * Cuts the middle out of a text of more than `maxLines` lines or `maxChars` characters, in whole lines where they are short
 * enough; a line says what is missing. The result keeps to both bounds, unless the note alone does not.
 * @param note one line for the gap, given the characters and line breaks left out.
 * @returns the same text when it is within the bounds.
 */
export function cutMiddle(
  text: string,
  maxLines: number,
  maxChars: number,
  note: (chars: number, lines: number) => string,
): string {
  if (text.length <= maxChars && !hasMoreLines(text, maxLines)) return text;
  // The longest that the note can get, and the line breaks around it.
  const room = Math.max(0, maxChars - note(text.length, text.length).length - 2);
  const lines = Math.max(0, Math.floor(maxLines) - 1);
  const end = wholeEnd(text, Math.min(afterLines(text, Math.ceil(lines / 2)), Math.ceil(room / 2)));
  const start = wholeStart(text, Math.max(lastLines(text, Math.floor(lines / 2)), text.length - Math.floor(room / 2)));
  const head = text.slice(0, end);
  const tail = text.slice(start);
  const gap = note(start - end, countBreaks(text, end, start));
  return `${head}${head === "" || head.endsWith("\n") ? "" : "\n"}${gap}${tail === "" ? "" : "\n"}${tail}`;
}

/** Whether a text has more than `count` lines. The break at its very end begins none. */
export function hasMoreLines(text: string, count: number): boolean {
  return afterLines(text, count) < text.length;
}

/** Where the first `count` lines end. */
function afterLines(text: string, count: number): number {
  let at = 0;
  for (let line = 0; line < count; line++) {
    const next = text.indexOf("\n", at);
    if (next === -1) return text.length;
    at = next + 1;
  }
  return at;
}

/** Where the last `count` lines begin. */
function lastLines(text: string, count: number): number {
  if (count === 0) return text.length;
  let at = text.endsWith("\n") ? text.length - 1 : text.length;
  for (let line = 0; line < count; line++) {
    const before = at === 0 ? -1 : text.lastIndexOf("\n", at - 1);
    if (before === -1) return 0;
    at = before;
  }
  return at + 1;
}

/** Back to the end of a line, if that costs less than half; never between the halves of a character. */
function wholeEnd(text: string, end: number): number {
  const line = end === 0 ? 0 : text.lastIndexOf("\n", end - 1) + 1;
  if (line > 0 && line * 2 >= end) return line;
  return isInsidePair(text, end) ? end - 1 : end;
}

/** On to the beginning of a line, if that costs less than half; never between the halves of a character. */
function wholeStart(text: string, start: number): number {
  if (text[start - 1] === "\n") return start;
  const line = text.indexOf("\n", start) + 1;
  if (line > 0 && line < text.length && (text.length - line) * 2 >= text.length - start) return line;
  return isInsidePair(text, start) ? start + 1 : start;
}

function isInsidePair(text: string, at: number): boolean {
  return (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(at) & 0xfc00) === 0xdc00;
}

function countBreaks(text: string, from: number, to: number): number {
  let count = 0;
  for (let at = text.indexOf("\n", from); at !== -1 && at < to; at = text.indexOf("\n", at + 1)) count++;
  return count;
}
