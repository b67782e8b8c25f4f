import { PerdureError } from "../base/error.ts";
import { type KindUnits, kindsOf } from "./learned.ts";
import { type CountText, unitsOfText } from "./text-units.ts";

/**
 * Counts a text's tokens as a model does, at most {@link MAX_PIECE} characters at a time. Must be quick, synchronous and give the
 * same for the same text. If it throws or returns no valid count, texts are estimated from then on.
 */
export type TextCounter = (text: string) => number;

/** What is asked for a counter of a model (`provider/modelId`). Undefined: texts are estimated. */
type CounterOf = (model: string) => TextCounter | undefined;

/** The most characters that a counter gets at a time. Many tokenizers take far more than twice as long for twice as much. */
export const MAX_PIECE = 10_000;
/** The most characters of one text that are counted. What is longer is taken to be like them. */
const MAX_COUNTED = 10 * MAX_PIECE;
/** Words are kept whole where there are some as short as this. */
const MAX_WORD = 200;
/** How many characters of texts are remembered for a model. */
const MAX_KEPT = 2_000_000;
/** What an entry takes besides its text, as characters. */
const ENTRY = 50;

/** The app's own counters, one for each model and life. One that fails is not asked again in that life. */
export class TokenCounters {
  readonly #find: CounterOf;
  readonly #failed: (model: string, error: string) => void;
  readonly #estimate: (model: string) => CountText;
  /** `false`: it has failed. */
  readonly #counters = new Map<string, CountText | false>();

  /** @param failed told once per model when its counter fails; must not throw @param estimate counts where the app does not */
  constructor(
    find: CounterOf,
    failed: (model: string, error: string) => void,
    estimate: (model: string) => CountText = () => unitsOfText,
  ) {
    this.#find = find;
    this.#failed = failed;
    this.#estimate = estimate;
  }

  /** How long texts are for a model: as the app counts, or as they are estimated. Never throws. */
  of(model: string): CountText {
    return this.own(model) ?? this.#estimate(model);
  }

  /** As the app counts, if it does. Never throws. */
  own(model: string): CountText | undefined {
    const known = this.#counters.get(model);
    if (known !== undefined) return known === false ? undefined : known;
    try {
      const own: unknown = this.#find(model);
      // It may be there later: a tokenizer takes a while to load.
      if (own === undefined) return undefined;
      if (typeof own !== "function") {
        throw new PerdureError("bad_config", "countTokens() must return a function that counts a text, or undefined.");
      }
      const counter = carefully(own as TextCounter, (thrown) => this.#fail(model, thrown));
      this.#counters.set(model, counter);
      return counter;
    } catch (thrown) {
      this.#fail(model, thrown);
      return undefined;
    }
  }

  /** Weighs something with one way to count: anew by the estimate if the counter fails meanwhile. */
  weigh(model: string, weigh: (count: CountText) => number): number {
    const count = this.of(model);
    const units = weigh(count);
    return this.of(model) === count ? units : weigh(this.of(model));
  }

  /** What a call weighs, for what is learned from it: as the app counts, or as nothing was known, with its kinds. */
  counted(model: string, weigh: (count: CountText) => number): { units: number; kinds?: KindUnits } {
    const own = this.own(model);
    const units = own === undefined ? 0 : weigh(own);
    if (own !== undefined && this.own(model) === own) return { units };
    const all = weigh(unitsOfText);
    return { units: all, kinds: kindsOf(weigh, all) };
  }

  /** Under what is kept what is learned about a model: a counter has other errors than the estimate. */
  rowOf(model: string): string {
    return this.own(model) === undefined ? model : `counted:${model}`;
  }

  #fail(model: string, thrown: unknown): void {
    this.#counters.set(model, false);
    this.#failed(model, thrown instanceof Error ? thrown.message : String(thrown));
  }
}

/** A counter that never throws, and remembers. @param failed is told once; from then on it estimates. */
function carefully(own: TextCounter, failed: (thrown: unknown) => void): CountText {
  const kept = new Map<string, number>();
  let size = 0;
  let works = true;
  return (text) => {
    if (text === "") return 0;
    if (!works) return unitsOfText(text);
    let tokens = kept.get(text);
    if (tokens !== undefined) kept.delete(text);
    else {
      try {
        tokens = countPieces(own, text);
      } catch (thrown) {
        works = false;
        kept.clear();
        failed(thrown);
        return unitsOfText(text);
      }
      size += text.length + ENTRY;
    }
    // The last that was asked for is the last that goes.
    kept.set(text, tokens);
    for (const oldest of kept.keys()) {
      if (size <= MAX_KEPT) break;
      kept.delete(oldest);
      size -= oldest.length + ENTRY;
    }
    return tokens;
  };
}

function countPieces(own: TextCounter, text: string): number {
  const sampled = text.length > MAX_COUNTED;
  // Of a very long text, pieces at the same distance from each other.
  const gap = sampled ? Math.floor(text.length / (MAX_COUNTED / MAX_PIECE)) - MAX_PIECE : 0;
  let tokens = 0;
  let units = 0;
  for (let start = 0; start < text.length;) {
    const end = pieceEnd(text, start);
    const piece = text.slice(start, end);
    tokens += checked(own(piece));
    if (sampled) units += unitsOfText(piece);
    start = gap === 0 ? end : wholePair(text, end + gap);
  }
  return sampled ? (tokens / units) * unitsOfText(text) : tokens;
}

/** Before a space or a line break if there is one near, and never through the middle of a pair. */
function pieceEnd(text: string, start: number): number {
  const most = start + MAX_PIECE;
  if (most >= text.length) return text.length;
  const tail = text.slice(most - MAX_WORD, most);
  const space = Math.max(tail.lastIndexOf(" "), tail.lastIndexOf("\n"));
  return space > 0 ? most - MAX_WORD + space : wholePair(text, most);
}

function wholePair(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code < 0xe000 ? at - 1 : at;
}

function checked(tokens: unknown): number {
  if (typeof tokens === "number" && tokens >= 0 && Number.isFinite(tokens)) return tokens;
  const said = tokens instanceof Promise ? "a promise" : String(tokens);
  throw new PerdureError(
    "bad_config",
    `The counter from countTokens() returned ${said}. It must return a number of tokens.`,
  );
}
