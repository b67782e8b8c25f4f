/** Keys whose text is kept: they say who waits for an answer. */
const TOLD_KEYS: ReadonlySet<string> = new Set(["type", "id", "txid"]);
/** Longer keys and texts of the outermost object are not looked at. */
const MAX_TOLD_LENGTH = 4_096;
/** A list is cut into pieces that take a few milliseconds to parse. */
const PIECE_VALUES = 10_000;
const PIECE_CHARS = 1024 * 1024;
/** After as much of a text it is asked whether that is enough. */
const LOOK_CHARS = 64 * 1024;

/** Where a list of the outermost object stands in the text, and where it may be cut into pieces. */
export interface ScannedList {
  /** The bracket that opens it, commas between its elements, the bracket that closes it. */
  readonly cuts: readonly number[];
  readonly elements: number;
  readonly values: number;
}

/**
 * Scans JSON without building anything: how much there is, how deep, and what the outermost object says of itself. Cost depends
 * on length alone, where parsing can take a hundred times longer. It does not say whether the text is JSON.
 */
export class JsonScan {
  readonly #text: string;
  readonly #listKey: string | undefined;
  readonly #told = new Map<string, string>();
  #at = 0;
  #level = 0;
  /** The last text at the first level, and whether a colon stood behind it. */
  #start = 0;
  #end = 0;
  #key: string | undefined;
  #list: { cuts: number[]; elements: number; values: number; from: number; pieceFrom: number } | undefined;
  #isInList = false;
  /** About as many values as the text has, lists and objects included. */
  values = 1;
  /** How many lists and objects stand inside each other at most. */
  depth = 0;
  /** The list stands there twice, or is closed by a brace. */
  isOdd = false;
  /** Where the quotes of the longest text stand. */
  longest = { start: 0, end: 0 };

  /** @param listKey the list that may be parsed in pieces, if there is one. */
  constructor(text: string, listKey?: string) {
    this.#text = text;
    this.#listKey = listKey;
  }

  /** The texts of `type`, `id` and `txid`. */
  get told(): ReadonlyMap<string, string> {
    return this.#told;
  }

  /** Whether all that was opened was closed. If not, it is not JSON. */
  get isClosed(): boolean {
    return this.#level === 0;
  }

  /** Undefined: there is none, or it has no end. */
  get list(): ScannedList | undefined {
    return this.#isInList ? undefined : this.#list;
  }

  /** How many of the values so far do not stand in the list. */
  get outside(): number {
    const list = this.#list;
    if (list === undefined) return this.values;
    return this.values - (this.#isInList ? this.values - list.from : list.values);
  }

  /** Looks at all of it. */
  run(): this {
    while (this.step(this.#text.length));
    return this;
  }

  /** Looks at it piece by piece, and no further as soon as `isEnough`. @returns whether it was. */
  runUntil(isEnough: () => boolean): boolean {
    while (this.step(LOOK_CHARS)) if (isEnough()) return true;
    return isEnough();
  }

  /** Looks at the next characters, about as many. @returns false at the end. */
  step(chars: number): boolean {
    const text = this.#text;
    const stop = Math.min(this.#at + chars, text.length);
    let at = this.#at;
    // Counted here and not in the fields, which takes several times longer.
    let level = this.#level;
    let { values, depth } = this;
    for (; at < stop; at++) {
      const char = text.charCodeAt(at);
      if (char === QUOTE) {
        const end = endOfText(text, at);
        if (level === 1) this.#toldText(at, end);
        if (end - at > this.longest.end - this.longest.start) this.longest = { start: at, end };
        at = end;
      } else if (char === COMMA) {
        values++;
        if (level === 1) this.#key = undefined;
        else if (level === 2 && this.#isInList) this.#element(at, values);
      } else if (char === OPEN_LIST || char === OPEN_OBJECT) {
        values++;
        level++;
        if (level > depth) depth = level;
        if (level === 2 && char === OPEN_LIST) this.#openList(at, values);
      } else if (char === CLOSE_LIST || char === CLOSE_OBJECT) {
        if (level === 2 && this.#isInList) this.#closeList(at, values);
        level--;
      } else if (char === COLON && level === 1) {
        this.#key = this.#lastText();
      }
    }
    this.#at = at;
    this.#level = level;
    this.values = values;
    this.depth = depth;
    return at < text.length;
  }

  #openList(at: number, values: number): void {
    if (this.#key === undefined || this.#key !== this.#listKey) return;
    if (this.#list !== undefined) this.isOdd = true;
    this.#list = { cuts: [at], elements: 1, values: 0, from: values, pieceFrom: values };
    this.#isInList = true;
  }

  #closeList(at: number, values: number): void {
    const list = this.#list;
    if (list === undefined) return;
    if (this.#text.charCodeAt(at) !== CLOSE_LIST) this.isOdd = true;
    list.cuts.push(at);
    list.values = values - list.from + 1;
    this.#isInList = false;
  }

  #element(at: number, values: number): void {
    const list = this.#list;
    if (list === undefined) return;
    list.elements++;
    const isLong = at - (list.cuts.at(-1) ?? 0) > PIECE_CHARS;
    if (!isLong && values - list.pieceFrom < PIECE_VALUES) return;
    list.cuts.push(at);
    list.pieceFrom = values;
  }

  #toldText(start: number, end: number): void {
    this.#start = start;
    this.#end = end;
    if (this.#key === undefined || !TOLD_KEYS.has(this.#key)) return;
    const value = this.#lastText();
    if (value !== undefined) this.#told.set(this.#key, value);
  }

  #lastText(): string | undefined {
    if (this.#end <= this.#start || this.#end - this.#start > MAX_TOLD_LENGTH) return undefined;
    try {
      return JSON.parse(this.#text.slice(this.#start, this.#end + 1)) as string;
    } catch {
      return undefined;
    }
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Quotes that stand closer together than this are looked for one character after the other. */
const CLOSE_QUOTES = 16;
/** As many characters, before the quotes are expected to be rare again. */
const CLOSE_CHARS = 4_096;

/** The quote that ends the text which begins with the quote at `start`; the end of everything if there is none. */
function endOfText(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length) {
    // Searching is many times faster where quotes are rare, and slower where they are not.
    const next = text.indexOf('"', at);
    if (next === -1) return text.length;
    if (!isEscaped(text, next, at)) return next;
    if (next - at >= CLOSE_QUOTES) {
      at = next + 1;
      continue;
    }
    const stop = Math.min(next + 1 + CLOSE_CHARS, text.length);
    for (at = next + 1; at < stop; at++) {
      const char = text.charCodeAt(at);
      if (char === BACKSLASH) at++;
      else if (char === QUOTE) return at;
    }
  }
  return text.length;
}

/** Whether the quote at `quote` belongs to an escape. Those before `from` were looked at. */
function isEscaped(text: string, quote: number, from: number): boolean {
  let before = quote;
  while (before > from && text.charCodeAt(before - 1) === BACKSLASH) before--;
  return (quote - before) % 2 === 1;
}
