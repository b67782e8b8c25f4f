import { firstChars } from "../message/cut-value.ts";

/** Longer words are known by their beginning. */
const MAX_WORD = 64;

/** A word of a text. */
export interface Word {
  /** What it is compared by: small letters without accents. */
  readonly key: string;
  readonly start: number;
  readonly end: number;
}

/** Scripts that put no spaces between words; and Korean, where endings are written onto them. */
const UNSPACED = ["Han", "Hiragana", "Katakana", "Hangul", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"];
const unspaced = `[${UNSPACED.map((script) => `\\p{sc=${script}}`).join("")}ー]`;

/** In those scripts each character is a word. Elsewhere a word is letters and digits. Pictures (emoji) count one by one. */
const WORD = new RegExp(
  `${unspaced}\\p{M}*|\\p{Extended_Pictographic}|\\p{RI}{2}` +
    `|[[\\p{L}\\p{N}]--${unspaced}][[\\p{L}\\p{N}\\p{M}]--${unspaced}]*`,
  "gv",
);

// oxlint-disable-next-line no-control-regex -- the whole of ASCII is meant
const ASCII = /^[\x00-\x7f]*$/;
const ASCII_WORD = /[A-Za-z0-9]+/g;
const LONG_ASCII_WORD = new RegExp(`[A-Za-z0-9]{${MAX_WORD + 1},}`, "g");
/** Accents of Latin, Greek and Cyrillic letters, points of Hebrew ones, vowel signs of Arabic ones and the stroke. */
const ACCENTS = /[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]/g;
/** Letters that people write one for the other. */
const SAME: Readonly<Record<string, string>> = { ى: "ي", ة: "ه", ı: "i", ß: "ss", ς: "σ" };
const SAME_LETTERS = /[ىةıßς]/g;

/** The words of a text, which should be in the form NFC, with their places. */
export function* wordsOf(text: string): Generator<Word, void> {
  const ascii = ASCII.test(text);
  for (const match of text.matchAll(ascii ? ASCII_WORD : WORD)) {
    const [raw] = match;
    yield { key: keyOf(raw), start: match.index, end: match.index + raw.length };
  }
}

/** The words of a text with spaces between them, for an index that splits at everything in ASCII but letters and digits. */
export function indexText(text: string): string {
  if (ASCII.test(text)) return text.replace(LONG_ASCII_WORD, (word) => word.slice(0, MAX_WORD));
  const keys: string[] = [];
  for (const { key } of wordsOf(text.normalize("NFC"))) keys.push(key);
  return keys.join(" ");
}

function keyOf(raw: string): string {
  const small = raw.toLowerCase();
  if (ASCII.test(small)) return small.slice(0, MAX_WORD);
  const plain = small.normalize("NFKD").replace(ACCENTS, "").normalize("NFC");
  return firstChars(
    plain.replace(SAME_LETTERS, (letter) => SAME[letter] ?? letter),
    MAX_WORD,
  );
}
