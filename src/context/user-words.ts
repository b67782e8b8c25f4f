import { isToldByCode } from "../message/told-line.ts";
import type { Part } from "../message/types.ts";
import type { Cut } from "./cut.ts";
import { spoken } from "./serialise.ts";
import { unitsOfText } from "./text-units.ts";

/**
 * What a user said in one message, as far as it is kept. An empty id counts messages that are not kept. `answer`: what the
 * assistant said there that nobody could guess, one sentence per line.
 */
export type SaidWords = readonly [id: string, text: string, by?: "answer"];

/** How much of a request may be words of people and models that are covered, as a share and in tokens. */
const WORDS_SHARE = 0.12;
const MAX_WORDS_TOKENS = 8_000;
/** In a small window, sentences that should not be lost have more, up to so many tokens: they are as long there as elsewhere. */
const SMALL_WORDS_SHARE = 0.2;
const SMALL_WORDS_TOKENS = 2_000;
/** The same as a share of the conversation: one that is compacted early should become shorter too. */
const WORDS_OF_CONVERSATION = 0.15;
const MIN_WORDS_TOKENS = 100;
/** How much of that is for what the assistant said, at most. */
const ANSWERS_SHARE = 1 / 3;
/** The most characters that are kept of one message, of its sentences that should not be lost, and of all messages. */
const KEPT_TEXT = 4_000;
const KEPT_SENTENCES = 1_200;
const KEPT_ALL = 48_000;
/** What is told of a message when there is no room for all of it. */
const FIRST_WORDS = 80;
/** A sentence of so many characters is told before anything is told of other messages; a longer one after that. */
const SHORT_SENTENCE = 180;
/** As long as there is room, of each message so much, before any has more. */
const MORE_WORDS = [160, 320, 640] as const;
/** How much of the budget the first message and the newest have each, before the others have any. */
const END_SHARE = 1 / 3;
/** Whatever a reader may take for one: no line of a user may stand where code writes its own. */
const LINE_END = /\r\n?|[\n\v\f\u0085\u2028\u2029]/g;
const SENTENCE_END = /[.!?…。！？]["'”»)\]]*$/;
const TITLE = "What the user said in messages that are not shown whole, in their own words, oldest first:";
const ANSWERS_TITLE = "What the assistant said in messages that are not shown any more, word for word, oldest first:";

/** How many tokens these words may have, by what a request may hold and by how long the conversation is. */
export function wordsBudget(usable: number, conversation: number): Pick<TellWords, "budget" | "most"> {
  const within = (share: number, most: number) =>
    Math.floor(Math.min(MAX_WORDS_TOKENS, most, Math.max(MIN_WORDS_TOKENS, share * conversation)));
  const budget = within(WORDS_OF_CONVERSATION, WORDS_SHARE * usable);
  const small = within(SMALL_WORDS_SHARE, Math.min(SMALL_WORDS_TOKENS, SMALL_WORDS_SHARE * usable));
  return { budget, most: Math.max(budget, small) };
}

/**
 * What users said in what is covered, oldest first, and the key sentences of the assistant. Words of tools are not theirs.
 * @param answers whether those of the assistant are wanted.
 */
export function coveredWords(covered: Cut["covered"], answers = true): SaidWords[] {
  const words: SaidWords[] = [];
  for (const { node, parts } of covered) {
    const { id, role } = node.message;
    if (role === "user" && !isToldByCode(node.message)) words.push([id, head(textOf(parts), KEPT_TEXT)]);
    if (role === "assistant" && answers) words.push([id, keyLines(textOf(parts)), "answer"]);
    for (const part of parts) {
      if (part.type === "steering-message") words.push([part.id, head(spoken(part).trim(), KEPT_TEXT)]);
    }
  }
  return words.filter(([, text]) => text !== "");
}

/** The sentences of an answer that should not be lost, each on a line. */
function keyLines(text: string): string {
  return keySpans(text)
    .map(({ from, to }) => text.slice(from, to))
    .join("\n");
}

/** Where the sentences are that should not be lost; if they are too many, those that say most. */
function keySpans(text: string, count = Number.POSITIVE_INFINITY): Span[] {
  let left = KEPT_SENTENCES;
  return findKeys(text)
    .toSorted((a, b) => b.weight - a.weight)
    .slice(0, count)
    .filter(({ from, to }) => (left -= to - from) >= 0)
    .toSorted((a, b) => a.from - b.from);
}

/**
 * Merges two lists, each message once; all pieces of an answer that is covered piece by piece. When too long, what lies between
 * the first and the newest message shrinks to sentences that matter, then to the best one, then goes.
 */
export function joinWords(older: readonly SaidWords[], newer: readonly SaidWords[]): SaidWords[] {
  const known = new Map<string, SaidWords>();
  for (const [id, text, by] of [...older, ...newer]) {
    const before = by === undefined ? undefined : known.get(id);
    const lines = before === undefined ? text : [...new Set(`${before[1]}\n${text}`.split("\n"))].join("\n");
    known.set(id, by === undefined ? [id, text] : [id, lines, by]);
  }
  let gone = Number(known.get("")?.[1] ?? 0);
  known.delete("");
  const words: SaidWords[] = [...known.values()];
  let size = words.reduce((sum, [, text]) => sum + text.length, 0);
  for (const shorten of SHORTER) {
    for (let at = 1; at < words.length - 1 && size > KEPT_ALL; at++) {
      const [id, text, by] = words[at] ?? ["", ""];
      const less = shortened(text, shorten);
      if (less === text) continue;
      words[at] = by === undefined ? [id, less] : [id, less, by];
      size -= text.length - less.length;
    }
  }
  let from = 1;
  for (; words.length - from > 1 && size > KEPT_ALL; from++) {
    const lost = words[from];
    size -= lost?.[1].length ?? 0;
    if (lost?.[2] === undefined) gone++;
  }
  return [...words.slice(0, 1), ...(gone === 0 ? [] : [["", String(gone)] as const]), ...words.slice(from)];
}

/** How a message's words shrink where there are too many, one after the other. */
const SHORTER: readonly ((text: string) => string)[] = [
  (text) => pieces(text, keySpans(text)),
  (text) => pieces(text, keySpans(text, 1)),
  (text) => head(text, FIRST_WORDS),
];

function shortened(text: string, shorten: (text: string) => string): string {
  if (text.length <= FIRST_WORDS + 1) return text;
  const less = shorten(text) || head(text, FIRST_WORDS);
  return less.length < text.length ? less : text;
}

/**
 * {@link joinWords} with the words of what is covered. Of a very long conversation only the newest words are kept beside the first,
 * however short they are made: the others are counted, and not looked at sentence by sentence.
 */
export function joinCovered(older: readonly SaidWords[], covered: Cut["covered"]): SaidWords[] {
  const from = keptFrom(covered);
  const before = new Set(older.map(([id]) => id));
  const early = covered.slice(0, from);
  let first = older.find(([id]) => id !== "");
  const lost = new Set(older.flatMap(([id, , by]) => (id === "" || by !== undefined ? [] : id)));
  let isTwice = from === 0;
  for (const one of early) {
    if (first === undefined) [first] = coveredWords([one]);
    for (const [id] of coveredWords([one], false)) lost.add(id);
    isTwice ||= before.has(one.node.message.id);
  }
  const newer = coveredWords(covered.slice(from));
  isTwice ||= first === undefined || newer.some(([id]) => before.has(id) || lost.has(id));
  // What was covered in part, or told before, goes on where it stood.
  if (isTwice || first === undefined) return joinWords(older, coveredWords(covered));
  lost.delete(first[0]);
  const gone = Number(older.find(([id]) => id === "")?.[1] ?? 0) + lost.size;
  return joinWords([first], [["", String(gone)], ...newer]);
}

/** From where on the words are more than is kept, made as short as they can be. 0: nowhere. */
function keptFrom(covered: Cut["covered"]): number {
  let size = 0;
  for (let at = covered.length - 1; at > 0; at--) {
    for (const [, text] of coveredWords(covered.slice(at, at + 1))) size += SHORTER.reduce(shortened, text).length;
    if (size > KEPT_ALL) return at;
  }
  return 0;
}

/** How the words are told. */
export interface TellWords {
  /** The most tokens. */
  readonly budget: number;
  /** The same where sentences that should not be lost need more. */
  readonly most?: number;
  /** Messages that are shown elsewhere. */
  readonly skip: ReadonlySet<string>;
  /** Messages that are shown whole as long as somebody wants that: their first words are enough. */
  readonly brief: ReadonlySet<string>;
  /** The summary that they stand below: what it says is not told again. */
  readonly summary?: string;
  /** Files that are told anyway: their names alone make no sentence worth telling. */
  readonly files?: ReadonlySet<string>;
}

/** The words of people and models as text, within a budget. Depends on what is given alone, not on what was learned of a model: after a restart it is the same text. */
export function renderWords(all: readonly SaidWords[], how: TellWords): string {
  const most = how.most ?? how.budget;
  const isSaid = saidIn(how.summary ?? "");
  const told = new Set<string>();
  /** What is not said in the summary, and not by a newer message. */
  const keysOf = ([, text]: SaidWords) =>
    keySentences(text, (word) => how.files?.has(word) === true)
      .filter((key) => !isSaid(key) && told.size < told.add(key.plain).size)
      .toSorted((a, b) => b.weight - a.weight);
  const isShown = ([id]: SaidWords) => id === "" || how.skip.has(id);
  const users = all.filter((one) => one[2] === undefined && !isShown(one));
  const keys = users.toReversed().map(keysOf).toReversed();
  const answers = all.filter((one) => one[2] === "answer" && !isShown(one) && !how.brief.has(one[0]));
  const found = answers.toReversed().map((one) => [one[1], keysOf(one)] as const);
  const lines = answerLines(found.toReversed(), most * ANSWERS_SHARE);
  const rest = { budget: how.budget - size(lines), most: most - size(lines) };
  const gone = Number(all.find(([id]) => id === "")?.[1] ?? 0);
  return [userLines(users, keys, gone, { ...how, ...rest }), lines].filter((text) => text !== "").join("\n\n");
}

function size(line: string): number {
  return line === "" ? 0 : unitsOfText(`${line}\n`);
}

/** What the assistant said, as long as there is room. @param answers oldest first. */
function answerLines(answers: readonly (readonly [string, readonly KeySentence[]])[], budget: number): string {
  let left = budget - size(ANSWERS_TITLE);
  const told: { readonly at: number; readonly from: number; readonly line: string }[] = [];
  for (const { at, key } of inRounds(answers.map(([, keys]) => keys))) {
    const line = toLine(answers[at]?.[0].slice(key.from, key.to) ?? "");
    if (size(line) > left) continue;
    left -= size(line);
    told.push({ at, from: key.from, line });
  }
  if (told.length === 0) return "";
  const lines = told.toSorted((a, b) => a.at - b.at || a.from - b.from).map(({ line }) => line);
  return [ANSWERS_TITLE, ...lines].join("\n");
}

/**
 * The order in which sentences get room: one of each message before any has two; first those with several things that cannot be
 * guessed, newest first, since it may replace what was said before. `keys`: oldest message first, best sentences first.
 */
function inRounds(keys: readonly (readonly KeySentence[])[]): { readonly at: number; readonly key: KeySentence }[] {
  const all = keys.flatMap((list, at) => list.map((key, round) => ({ at, key, round })));
  const isRich = ({ weight }: KeySentence) => Number(weight > 1);
  return all.toSorted((a, b) => a.round - b.round || isRich(b.key) - isRich(a.key) || b.at - a.at);
}

/**
 * What the user said, in order of room: the first message and the newest, unless long; short sentences that should not be lost;
 * short messages; first words of all others; longer such sentences; then ever more of all. Newest first, except that sentences
 * with several such things go before others.
 */
function userLines(
  words: readonly SaidWords[],
  keys: readonly (readonly KeySentence[])[],
  before: number,
  { budget, most, brief }: Required<Pick<TellWords, "budget" | "most" | "brief">>,
): string {
  if (words.length === 0) return "";
  const told = new Map<number, readonly Span[]>();
  const textAt = (at: number) => words[at]?.[1] ?? "";
  const lineOf = (at: number, spans: readonly Span[]) => toLine(pieces(textAt(at), spans));
  let left = most - size(TITLE) - size(moreLine(words.length));
  const put = (at: number, more: readonly Span[]) => {
    const before = told.get(at);
    const spans = joinSpans([...(before ?? []), ...more]);
    const cost = size(lineOf(at, spans)) - (before === undefined ? 0 : size(lineOf(at, before)));
    if (cost > left) return false;
    told.set(at, spans);
    left -= cost;
    return true;
  };
  const first = (at: number, most: number) => [{ from: 0, to: headLength(textAt(at), most) }];
  const isBrief = (at: number) => brief.has(words[at]?.[0] ?? "");
  const whole = (at: number) => first(at, isBrief(at) ? FIRST_WORDS : textAt(at).length);
  const newest = words.length - 1;
  const ends = [...new Set([0, newest])];
  const between = Array.from({ length: Math.max(0, newest - 1) }, (_, i) => newest - 1 - i);
  const downwards = [...new Set([newest, ...between, 0])].filter((at) => !isBrief(at));
  for (const at of ends) {
    const isSmall = size(lineOf(at, whole(at))) <= most * END_SHARE;
    put(at, isSmall ? whole(at) : first(at, FIRST_WORDS));
  }
  const inTurn = inRounds(keys).filter(({ at }) => !isBrief(at));
  const putKeys = (longest: number) => {
    for (const { at, key } of inTurn) if (key.to - key.from <= longest) put(at, [key]);
  };
  putKeys(SHORT_SENTENCE);
  left -= most - budget;
  for (const at of between) if (textAt(at).length <= FIRST_WORDS && !textAt(at).endsWith("…")) put(at, whole(at));
  for (const at of between) if (!told.has(at)) put(at, first(at, FIRST_WORDS));
  left += most - budget;
  putKeys(Number.POSITIVE_INFINITY);
  left -= most - budget;
  for (const at of ends) {
    if (put(at, whole(at)) || isBrief(at)) continue;
    let most = textAt(at).length;
    const room = left / 2 + size(lineOf(at, told.get(at) ?? []));
    while (most > FIRST_WORDS / 2 && size(lineOf(at, first(at, most))) > room) most = Math.floor(most * 0.8);
    put(at, first(at, most));
  }
  const longer = downwards.filter((at) => told.has(at));
  for (const most of MORE_WORDS) for (const at of longer) put(at, first(at, most));
  for (const at of longer) put(at, whole(at));
  if (told.size === 0) return "";
  const gone = words.length - told.size + before;
  const lines = [...told].toSorted(([a], [b]) => a - b).map(([at, spans]) => lineOf(at, spans));
  if (gone > 0) lines.splice(told.has(0) ? 1 : 0, 0, moreLine(gone));
  return [TITLE, ...lines].join("\n");
}

/** Pieces of a text, with marks where something is left out that is no whole sentence, and between them. */
function pieces(text: string, spans: readonly Span[]): string {
  let said = "";
  let end = 0;
  for (const { from, to } of spans) {
    const gap = text.slice(end, from);
    const mark = said === "" ? (SENTENCE_END.test(gap.trimEnd()) ? "" : "…") : " … ";
    said += `${gap.trim() === "" ? gap : mark}${text.slice(from, to)}`;
    end = to;
  }
  return text.slice(end).trim() === "" || SENTENCE_END.test(said) ? said : `${said.trimEnd()}…`;
}

/** The same pieces in their order, each place once. */
function joinSpans(spans: readonly Span[]): Span[] {
  const joined: Span[] = [];
  for (const span of spans.toSorted((a, b) => a.from - b.from)) {
    const last = joined.at(-1);
    if (last === undefined || span.from > last.to) joined.push(span);
    else joined[joined.length - 1] = { from: last.from, to: Math.max(last.to, span.to) };
  }
  return joined;
}

function moreLine(count: number): string {
  return `- (${count} more messages: search the conversation)`;
}

function toLine(text: string): string {
  // What is cut may be cut in two halves of one character.
  return `- ${text.toWellFormed().replaceAll(LINE_END, "\n  ")}`;
}

function head(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, headLength(text, most))}…`;
}

/** How many characters the beginning of a text has that ends with a word. */
function headLength(text: string, most: number): number {
  if (text.length <= most) return text.length;
  const cut = text.slice(0, most);
  const blank = cut.search(/\s\S*$/);
  return cut.slice(0, blank > most / 2 ? blank : undefined).trimEnd().length;
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

/** A piece of a text, from a character up to another. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/** A sentence that says what nobody could guess, and what that is. */
interface KeySentence extends Span {
  /** The more, the more of it cannot be guessed. */
  readonly weight: number;
  /** Its text without marks and capitals: the same thing said again is told once. */
  readonly plain: string;
  /** For each word that decides, itself with the words around it, in all ways: any of them says it. */
  readonly says: readonly (readonly string[])[];
}

/** The most characters of one sentence. Of a longer one, so much around the first word that cannot be guessed. */
const MAX_SENTENCE = 300;
/** How many words in a row, at least, make it sure that two texts say the same. */
const SAME_WORDS = 3;
const MAX_WEIGHT = 4;
/** Sentences end with a line, and with these marks where something follows. */
const SENTENCE_BREAK = /\n+|[.!?…]+["'”»)\]]*\s+|[。！？]/g;
/** A dot behind these ends no sentence. */
const SHORTENED = /(?:^|[\s(])(?:\p{L}|\p{L}\.\p{L}|[dm]r|mrs|ms|no|nr|vs|approx|fig|ca|bzw)\.\s*$/iu;
/** Numbers, paths, addresses, names of code, and what is put in quotes. */
const UNUSUAL = /\p{N}|[_@\\]|\S\/\S|\p{L}[.:]+\p{L}|\p{Ll}\p{Lu}|^["“«„`‘「]/u;
const CAPITALS = /^\p{Lu}[\p{Lu}\p{Ll}]/u;
/** Words of rules: a sentence with one says what must be. */
const RULE = /\b(?:never|always|must|mustn't|don't|do not|may not|only|unless|forbidden|required)\b/i;

/** A sentence that should not be lost, before its words are looked at one by one. */
interface Found extends Span {
  readonly words: readonly string[];
  /** The words that decide. */
  readonly tells: readonly number[];
  readonly weight: number;
}

/** The sentences of a text that should not be lost: with numbers, names, paths, quotes, or the words of a rule. In their order. */
export function keySentences(text: string, isKnown: (word: string) => boolean = () => false): KeySentence[] {
  return findKeys(text, isKnown).map(({ words, tells, from, to, weight }) => {
    const bare = words.map(plainOf);
    const plain = bare.filter((word) => word !== "").join(" ");
    const says = tells.length === 0 ? [[plain]] : tells.map((at) => around(bare, at));
    return { from, to, weight, plain, says };
  });
}

/** The same without what they say: of a long conversation most sentences are only counted. */
function findKeys(text: string, isKnown: (word: string) => boolean = () => false): Found[] {
  return sentences(text).flatMap((span) => {
    const sentence = text.slice(span.from, span.to);
    const matches = [...sentence.matchAll(/\S+/g)];
    const words = matches.map(([word]) => word);
    const find = (is: (word: string, i: number) => boolean) =>
      words.flatMap((word, i) => (is(word, i) && plainOf(word) !== "" && !isKnown(trimmed(word)) ? [i] : []));
    const unusual = find((word) => UNUSUAL.test(word));
    const names = find((word, i) => i > 0 && CAPITALS.test(word) && !UNUSUAL.test(word));
    const hits = unusual.length + names.length;
    const isRule = RULE.test(sentence);
    if (hits === 0 && !isRule) return [];
    // A capital may be no name: where there is a number, it decides.
    const tells = unusual.length > 0 ? unusual : names;
    const weight = Math.min(MAX_WEIGHT, hits + Number(isRule));
    const first = matches[tells[0] ?? 0]?.index ?? 0;
    return [{ ...within(text, span, span.from + first), weight, words, tells }];
  });
}

/** Tells whether a text says a sentence already, in its words. */
export function saidIn(text: string): (key: Pick<KeySentence, "says">) => boolean {
  const lines = text
    .split("\n")
    .map((line) => ` ${plainOf(line)} `)
    .join("\n");
  return ({ says }) => says.every((ways) => ways.some((words) => lines.includes(` ${words} `)));
}

/** The text in small letters, with nothing but letters and digits. */
function plainOf(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
}

function trimmed(word: string): string {
  return word.replace(/^[^\p{L}\p{N}./~]+|[^\p{L}\p{N}]+$/gu, "");
}

/** A word with those around it, so many that it is no chance when another text has them. */
function around(words: readonly string[], at: number): string[] {
  const ways: string[] = [];
  for (let from = Math.max(0, at - SAME_WORDS + 1); from <= at; from++) {
    const row = words.slice(from, from + SAME_WORDS);
    if (row.length === SAME_WORDS || from === 0) ways.push(row.filter((word) => word !== "").join(" "));
  }
  return ways;
}

function sentences(text: string): Span[] {
  const spans: Span[] = [];
  let from = 0;
  const put = (to: number) => {
    const piece = text.slice(from, to);
    const start = from + piece.length - piece.trimStart().length;
    const end = from + piece.trimEnd().length;
    if (end > start) spans.push({ from: start, to: end });
    from = to;
  };
  for (const { 0: mark, index } of text.matchAll(SENTENCE_BREAK)) {
    const to = index + mark.length;
    if (!mark.startsWith(".") || !SHORTENED.test(text.slice(Math.max(from, to - 12), to))) put(to);
  }
  put(text.length);
  return spans;
}

/** As much of a sentence as is told, with the place that matters in it. */
function within(text: string, { from, to }: Span, place: number): Span {
  if (to - from <= MAX_SENTENCE) return { from, to };
  const start = Math.max(from, Math.min(place - MAX_SENTENCE / 2, to - MAX_SENTENCE));
  const piece = text.slice(start, start + MAX_SENTENCE);
  const skip = start === from ? 0 : piece.search(/\s/) + 1;
  const blank = piece.search(/\s\S*$/);
  return { from: start + skip, to: start + (start + MAX_SENTENCE >= to || blank <= skip ? piece.length : blank) };
}
