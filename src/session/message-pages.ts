import type { ReadableEntry } from "./path-window.ts";

/** One message that is shown otherwise than it is stored, or not at all. */
export interface Instead {
  readonly id: string;
  readonly json: string | undefined;
}

/** A stretch of a conversation. */
export interface MessagePage {
  /** A JSON array, oldest first. */
  readonly json: string;
  /** With this, the page before can be had; undefined when there is nothing before. */
  readonly before: number | undefined;
  /** Numbers in the tree of the messages that it shows. */
  readonly seqs: readonly number[];
}

/** The most that a page holds, in UTF-16 units of JSON, unless its newest message alone is longer. */
const MAX_PAGE_LENGTH = 500_000;
/** The most of a conversation that is shown at once to those who cannot ask for pages. */
const MAX_WHOLE_LENGTH = 24_000_000;

/** Messages as a JSON array, within a bound. @param up newest first; read as far as they fit. */
export function writeWhole(up: Iterable<ReadableEntry>, instead?: Instead): string {
  const texts: string[] = [];
  let length = 0;
  for (const entry of up) {
    const text = shown(entry, instead);
    if (text === undefined) continue;
    length += text.length;
    if (length > MAX_WHOLE_LENGTH && texts.length > 0) break;
    texts.push(text);
  }
  return `[${texts.reverse().join(",")}]`;
}

/** At most `limit` messages as a page. @param up newest first; read no further than needed. */
export function writePage(up: Iterable<ReadableEntry>, limit: number, instead?: Instead): MessagePage {
  const texts: string[] = [];
  const seqs: number[] = [];
  let length = 0;
  let first: ReadableEntry | undefined;
  for (const entry of up) {
    const text = shown(entry, instead);
    length += text?.length ?? 0;
    if ((length > MAX_PAGE_LENGTH && texts.length > 0) || seqs.length >= limit) break;
    if (text !== undefined) texts.push(text);
    seqs.push(entry.seq);
    first = entry;
  }
  const before = first === undefined || first.parent === null ? undefined : first.seq;
  return { json: `[${texts.reverse().join(",")}]`, before, seqs: seqs.reverse() };
}

function shown(entry: ReadableEntry, instead: Instead | undefined): string | undefined {
  return entry.id === instead?.id ? instead.json : entry.json;
}
