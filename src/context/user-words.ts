import { isToldByCode } from "../message/told.ts";
import type { Part } from "../message/types.ts";
import type { Cut } from "./cut.ts";
import { spoken } from "./serialise.ts";
import { unitsOfText } from "./text-units.ts";

/**
 * What a user said in one message: its id and the text, as far as it is kept. An empty id: so many messages were said and
 * are not kept.
 */
export type SaidWords = readonly [id: string, text: string];

/** How much of a request may be words of the user that are covered, as a share and in tokens. */
const WORDS_SHARE = 0.12;
const MAX_WORDS_TOKENS = 8_000;
/** The same as a share of the conversation: one that is compacted early should become shorter too. */
const WORDS_OF_CONVERSATION = 0.15;
const MIN_WORDS_TOKENS = 100;
/** The most characters that are kept of one message, and of all of them. */
const KEPT_TEXT = 4_000;
const KEPT_ALL = 48_000;
/** What is told of a message when there is no room for all of it. */
const FIRST_WORDS = 80;
/** As long as there is room, of each message so much, before any has more. */
const MORE_WORDS = [160, 320, 640] as const;
/** How much of the budget the first message and the newest have each, before the others have any. */
const END_SHARE = 1 / 3;
/** Whatever a reader may take for one: no line of a user may stand where code writes its own. */
const LINE_END = /\r\n?|[\n\v\f\u0085\u2028\u2029]/g;
const TITLE = "What the user said in messages that are not shown whole, in their own words, oldest first:";

/** How many tokens the words of the user may have, by what a request may hold and by how long the conversation is. */
export function wordsBudget(usable: number, conversation: number): number {
  const share = Math.max(MIN_WORDS_TOKENS, WORDS_OF_CONVERSATION * conversation);
  return Math.floor(Math.min(MAX_WORDS_TOKENS, WORDS_SHARE * usable, share));
}

/** What users said in what is covered, also into answers, oldest first. What a tool said in their place is not theirs. */
export function userWords(covered: Cut["covered"]): SaidWords[] {
  const words: SaidWords[] = [];
  for (const { node, parts } of covered) {
    if (node.message.role === "user" && !isToldByCode(node.message)) words.push([node.message.id, textOf(parts)]);
    for (const part of parts) if (part.type === "steering-message") words.push([part.id, spoken(part).trim()]);
  }
  return words.filter(([, text]) => text !== "").map(([id, text]) => [id, head(text, KEPT_TEXT)]);
}

/** Two lists as one, each message once. When it is too much, those between the first and the newest lose their ends. */
export function joinWords(older: readonly SaidWords[], newer: readonly SaidWords[]): SaidWords[] {
  const known = new Map<string, string>();
  for (const [id, text] of [...older, ...newer]) known.set(id, text);
  let gone = Number(known.get("") ?? 0);
  known.delete("");
  const words: SaidWords[] = [...known];
  let size = words.reduce((sum, [, text]) => sum + text.length, 0);
  for (let at = 1; at < words.length - 1 && size > KEPT_ALL; at++) {
    const [id, text] = words[at] ?? ["", ""];
    words[at] = [id, head(text, FIRST_WORDS)];
    size -= text.length - (words[at]?.[1].length ?? 0);
  }
  while (words.length > 2 && size > KEPT_ALL) {
    const [lost] = words.splice(1, 1);
    size -= lost?.[1].length ?? 0;
    gone++;
  }
  return gone === 0 ? words : [...words.slice(0, 1), ["", String(gone)], ...words.slice(1)];
}

/** How the words are told. */
export interface TellWords {
  /** The most tokens. */
  readonly budget: number;
  /** Messages that are shown elsewhere. */
  readonly skip: ReadonlySet<string>;
  /** Messages that are shown whole as long as somebody wants that: their first words are enough. */
  readonly brief: ReadonlySet<string>;
}

/**
 * The words of the user as text, within a budget: the first words of each message, short messages before long ones; all
 * of the first message and of the newest; then more and more of the others, the newest first. Depends on what is given
 * alone, not on what was learned of a model: after a restart it is the same text.
 */
export function renderWords(all: readonly SaidWords[], { budget, skip, brief }: TellWords): string {
  const words = all.filter(([id]) => id !== "" && !skip.has(id));
  if (words.length === 0) return "";
  const size = (line: string) => unitsOfText(`${line}\n`);
  const told = new Map<number, string>();
  let left = budget - size(TITLE) - size(moreLine(words.length));
  const put = (at: number, line: string) => {
    const before = told.get(at);
    const more = size(line) - (before === undefined ? 0 : size(before));
    if (more > left) return false;
    told.set(at, line);
    left -= more;
    return true;
  };
  const some = (at: number, most: number) => toLine(head(words[at]?.[1] ?? "", most));
  const short = (at: number) => some(at, FIRST_WORDS);
  const whole = (at: number) => (brief.has(words[at]?.[0] ?? "") ? short(at) : toLine(words[at]?.[1] ?? ""));
  const newest = words.length - 1;
  const ends = [...new Set([0, newest])];
  const between = Array.from({ length: Math.max(0, newest - 1) }, (_, i) => newest - 1 - i);
  const isShort = (at: number) => (words[at]?.[1].length ?? 0) <= FIRST_WORDS;
  // The two ends, whole unless they are long; something of each, first of those that cost least; then all that fits.
  for (const at of ends) put(at, size(whole(at)) <= budget * END_SHARE ? whole(at) : short(at));
  for (const at of between.filter(isShort)) put(at, short(at));
  for (const at of between) if (!told.has(at)) put(at, short(at));
  for (const at of ends) {
    if (!put(at, whole(at)) && !brief.has(words[at]?.[0] ?? "")) {
      put(at, fitting(words[at]?.[1] ?? "", left / 2 + size(told.get(at) ?? ""), size));
    }
  }
  const longer = between.filter((at) => told.has(at) && !brief.has(words[at]?.[0] ?? ""));
  for (const most of MORE_WORDS) for (const at of longer) put(at, some(at, most));
  for (const at of longer) put(at, whole(at));
  if (told.size === 0) return "";
  const before = Number(all.find(([id]) => id === "")?.[1] ?? 0);
  const gone = words.length - told.size + before;
  const lines = [...told].toSorted(([a], [b]) => a - b).map(([, line]) => line);
  if (gone > 0) lines.splice(told.has(0) ? 1 : 0, 0, moreLine(gone));
  return [TITLE, ...lines].join("\n");
}

function moreLine(count: number): string {
  return `- (${count} more messages: search the conversation)`;
}

/** As much of the beginning of a text as fits. */
function fitting(text: string, room: number, size: (line: string) => number): string {
  let most = text.length;
  while (most > FIRST_WORDS / 2 && size(toLine(head(text, most))) > room) most = Math.floor(most * 0.8);
  return toLine(head(text, most));
}

function toLine(text: string): string {
  return `- ${text.replaceAll(LINE_END, "\n  ")}`;
}

function head(text: string, most: number): string {
  if (text.length <= most) return text;
  const cut = text.slice(0, most);
  const blank = cut.search(/\s\S*$/);
  return `${cut.slice(0, blank > most / 2 ? blank : undefined).trimEnd()}…`;
}

function textOf(parts: readonly Part[]): string {
  return parts
    .map((part) => {
      if (part.type === "text") return part.text;
      return part.type === "file" ? `[file ${part.filename ?? part.mediaType}]` : "";
    })
    .filter((text) => text !== "")
    .join("\n")
    .trim();
}
