// What text weighs, in quarters of a unit, so that sums of any length are exact. A unit is about one token.
const QUARTERS = 4;
/** English and code: four characters to a token. */
const ASCII = 1;
/** Other alphabets: about two characters to a token. */
const OTHER = 2;
/** Han, Kana, Hangul, full width: each character is about a token. So is each half of a pair: an emoji is about two. */
const WIDE = 4;

const FIRST_BEYOND_ASCII = 0x80;
const BEYOND_ASCII = /[\u0080-\uffff]/;
const HANGUL_JAMO = [0x1100, 0x1200] as const;
/** From here on nearly everything is wide: radicals, punctuation, Kana, Han, Hangul, and the halves of pairs. */
const FIRST_WIDE = 0x2e80;
/** The exceptions, each from its first character to the one behind its last. */
const PRIVATE_USE = [0xe000, 0xf900] as const;
const LETTER_FORMS = [0xfb00, 0xfe30] as const;
const SMALL_FORMS = [0xfe50, 0xff00] as const;
const SPECIALS = 0xfff0;

/** A text's length in units: {@link unitsOfText} or the app's counter. Never throws. `data`: a tool's input, output or schema. */
export type CountText = (text: string, as?: "data") => number;

/** The least that texts of so many characters can weigh in {@link unitsOfText}. */
export function leastUnits(chars: number): number {
  return (chars * ASCII) / QUARTERS;
}

/** About how many tokens a text has, before anything is known about the model. Looks at each character once. */
export function unitsOfText(text: string): number {
  // Most texts are ASCII to the end, which a search finds out several times faster than a loop.
  const ascii = text.search(BEYOND_ASCII);
  if (ascii === -1) return (text.length * ASCII) / QUARTERS;
  let quarters = ascii * ASCII;
  for (let index = ascii; index < text.length; index++) {
    const code = text.charCodeAt(index);
    quarters += code < FIRST_BEYOND_ASCII ? ASCII : isWide(code) ? WIDE : OTHER;
  }
  return quarters / QUARTERS;
}

/** What the wide characters of a text weigh in {@link unitsOfText}. */
export function unitsOfWide(text: string): number {
  let quarters = 0;
  const first = text.search(BEYOND_ASCII);
  for (let index = first === -1 ? text.length : first; index < text.length; index++) {
    if (isWide(text.charCodeAt(index))) quarters += WIDE;
  }
  return quarters / QUARTERS;
}

/** What a value weighs when it is sent as JSON. What cannot be written as JSON weighs nothing. */
export function unitsOfJson(value: unknown, count: CountText = unitsOfText): number {
  return count(typeof value === "string" ? value : safeJson(value), "data");
}

/** A value as JSON; empty where it cannot be. */
export function safeJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "";
  }
}

function isWide(code: number): boolean {
  if (code < FIRST_WIDE) return within(code, HANGUL_JAMO);
  if (code < PRIVATE_USE[0]) return true;
  return code < SPECIALS && !within(code, PRIVATE_USE) && !within(code, LETTER_FORMS) && !within(code, SMALL_FORMS);
}

function within(code: number, [first, behind]: readonly [number, number]): boolean {
  return code >= first && code < behind;
}

/** What things weigh that are looked at once, for each way to count. Nothing is kept alive by it. */
export class Remembered<Key extends object> {
  readonly #known = new WeakMap<CountText, WeakMap<Key, number>>();

  of(key: Key, count: CountText, weigh: () => number): number {
    const before = this.#known.get(count)?.get(key);
    if (before !== undefined) return before;
    const units = weigh();
    this.set(key, count, units);
    return units;
  }

  set(key: Key, count: CountText, units: number): void {
    let known = this.#known.get(count);
    if (known === undefined) this.#known.set(count, (known = new WeakMap()));
    known.set(key, units);
  }
}
