/** A piece of a text, from a character up to another. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** A sentence that says what nobody could guess, and what that is. */
export interface KeySentence extends Span {
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
const SENTENCE_END = /\n+|[.!?…]+["'”»)\]]*\s+|[。！？]/g;
/** A dot behind these ends no sentence. */
const SHORTENED = /(?:^|[\s(])(?:\p{L}|\p{L}\.\p{L}|[dm]r|mrs|ms|no|nr|vs|approx|fig|ca|bzw)\.\s*$/iu;
/** Numbers, paths, addresses, names of code, and what is put in quotes. */
const UNUSUAL = /\p{N}|[_@\\]|\S\/\S|\p{L}[.:]+\p{L}|\p{Ll}\p{Lu}|^["“«„`‘「]/u;
const CAPITALS = /^\p{Lu}[\p{Lu}\p{Ll}]/u;
/** Words of rules: a sentence with one says what must be. */
const RULE = /\b(?:never|always|must|mustn't|don't|do not|may not|only|unless|forbidden|required)\b/i;

/** The sentences of a text that should not be lost: with numbers, names, paths, quotes, or the words of a rule. In their order. */
export function keySentences(text: string, isKnown: (word: string) => boolean = () => false): KeySentence[] {
  return sentences(text).flatMap((span) => {
    const words = [...text.slice(span.from, span.to).matchAll(/\S+/g)];
    const bare = words.map(([word]) => plainOf(word));
    const find = (is: (word: string, i: number) => boolean) =>
      words.flatMap(([word], i) => (is(word, i) && bare[i] !== "" && !isKnown(trimmed(word)) ? [i] : []));
    const unusual = find((word) => UNUSUAL.test(word));
    const names = find((word, i) => i > 0 && CAPITALS.test(word) && !UNUSUAL.test(word));
    const hits = [...unusual, ...names];
    const isRule = RULE.test(text.slice(span.from, span.to));
    if (hits.length === 0 && !isRule) return [];
    const plain = bare.filter((word) => word !== "").join(" ");
    // A capital may be no name: where there is a number, it decides.
    const tells = unusual.length > 0 ? unusual : names;
    const says = tells.length === 0 ? [[plain]] : tells.map((at) => around(bare, at));
    const weight = Math.min(MAX_WEIGHT, hits.length + Number(isRule));
    const first = words[tells[0] ?? 0]?.index ?? 0;
    return [{ ...within(text, span, span.from + first), weight, plain, says }];
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
  for (const { 0: mark, index } of text.matchAll(SENTENCE_END)) {
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
