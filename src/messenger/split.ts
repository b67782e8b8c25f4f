/*
 * Where a text is cut into messages
 *
 * A text grows while it is shown. So a cut depends only on what stands before it: nothing later moves it, and a text that comes
 * at once is cut where one in pieces is.
 */

/** A cut further up than this part of the limit wastes too much of a message. */
const LEAST = 0.5;

interface Fence {
  readonly mark: string;
  readonly opening: string;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;

/** The code block that is open at the end of `text`, if one is. */
function openFence(text: string): Fence | undefined {
  let open: Fence | undefined;
  for (const line of text.split("\n")) {
    const found = FENCE.exec(line);
    const mark = found?.[1];
    if (mark === undefined) continue;
    if (open === undefined) open = { mark, opening: line.trimStart() };
    else if (mark.startsWith(open.mark) && found?.[2]?.trim() === "") open = undefined;
  }
  return open;
}

/** Room for what is added to a part so that it can stand alone: the fence before it and behind it. */
const MARGIN = 64;

/**
 * Where the message from `start` ends; undefined while the rest fits. Cut at the last blank line outside code, else the last
 * line, the last word, or inside one; never inside a character.
 */
export function cutAt(text: string, start: number, limit: number): number | undefined {
  const room = limit - MARGIN;
  if (text.length - start <= room) return undefined;
  const window = text.slice(start, start + room);
  const least = Math.floor(room * LEAST);
  const before = text.slice(0, start);
  for (let at = window.lastIndexOf("\n\n"); at >= least; at = window.lastIndexOf("\n\n", at - 1)) {
    if (openFence(before + window.slice(0, at + 1)) === undefined) return start + at + 2;
  }
  const line = window.lastIndexOf("\n");
  if (line >= least) return start + line + 1;
  const word = window.lastIndexOf(" ");
  if (word >= least) return start + word + 1;
  const last = text.charCodeAt(start + room - 1);
  return start + room - (last >= 0xd800 && last <= 0xdbff ? 1 : 0);
}

/** What stands in the message from `start` to `end`: code that was cut is closed, and opened again. */
export function partOf(text: string, start: number, end: number): string {
  const before = openFence(text.slice(0, start));
  const after = openFence(text.slice(0, end));
  let part = text.slice(start, end);
  // A long opening would eat the room; its language is of no use then.
  if (before !== undefined) part = `${before.opening.length < MARGIN / 2 ? before.opening : before.mark}\n${part}`;
  part = part.replace(/\s+$/u, "");
  if (after !== undefined) part += `\n${after.mark}`;
  return before === undefined ? part.replace(/^\s*\n/u, "") : part;
}
