/** Keys whose text is kept: they say who waits for an answer. */
const TOLD_KEYS: ReadonlySet<string> = new Set(["type", "id", "txid"]);
/** Longer keys and texts of the outermost object are not looked at. */
const MAX_TOLD_LENGTH = 4_096;
/** A list is cut into pieces that take a few milliseconds to parse. */
const PIECE_VALUES = 10_000;
const PIECE_CHARS = 1024 * 1024;

/** Where a list of the outermost object stands in the text, and where it may be cut into pieces. */
export interface ScannedList {
  /** The bracket that opens it, commas between its elements, the bracket that closes it. */
  readonly cuts: readonly number[];
  readonly elements: number;
  readonly values: number;
}

/**
 * Looks at JSON without making anything of it: how much there is, how deep, and what the outermost object says of itself.
 * What it costs depends on the length alone, where parsing a text of the same length can take a hundred times longer.
 * It does not say whether the text is JSON.
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

  /** Looks at all of it. */
  run(): this {
    while (this.step(this.#text.length));
    return this;
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

/** The quote that ends the text which begins with the quote at `start`; the end of everything if there is none. */
function endOfText(text: string, start: number): number {
  const next = text.indexOf('"', start + 1);
  if (next === -1) return text.length;
  if (text.charCodeAt(next - 1) !== BACKSLASH) return next;
  // It may be escaped. Searching on from quote to quote would be slow where there are many.
  for (let at = start + 1; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === BACKSLASH) at++;
    else if (char === QUOTE) return at;
  }
  return text.length;
}
