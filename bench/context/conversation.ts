/** Something that was said once and matters to the end: its exact words are looked for in what the model is sent. */
export interface Fact {
  readonly text: string;
  /** Who said it. What a tool told, the assistant repeats in its answer, as models do. */
  readonly by: "user" | "tool";
  /** In which turn. */
  readonly turn: number;
  /** What it is about. A later fact about the same replaces it: somebody has changed their mind. */
  readonly about: string;
}

/** Facts that no other of these replaces. */
export function newest(facts: readonly Fact[]): Fact[] {
  const last = new Map(facts.map((fact) => [fact.about, fact]));
  return facts.filter((fact) => last.get(fact.about) === fact);
}

/** A call of a tool and what comes of it. */
export interface PlannedCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly output: unknown;
  /** What the output shows. A later output with the same subject makes it stale; undefined: nothing does. */
  readonly subject: string | undefined;
}

/** A question, the calls that it takes, one step after the other, and the answer. */
export interface PlannedTurn {
  readonly ask: string;
  readonly calls: readonly PlannedCall[];
  readonly answer: string;
}

/** A whole conversation, known before it is played. */
export interface Conversation {
  readonly name: string;
  readonly system: string;
  /** The tools and what each is for. */
  readonly tools: Readonly<Record<string, string>>;
  readonly turns: readonly PlannedTurn[];
  readonly facts: readonly Fact[];
}

/** Chance that is the same in every run. */
export class Chance {
  #state: number;

  /** Whether every other sentence has a number in it that is of no use to anybody. */
  readonly #figures: boolean;

  constructor(seed: number, figures: boolean) {
    this.#state = seed;
    this.#figures = figures;
  }

  /** From 0 up to, not including, `n`. */
  int(n: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000) * n);
  }

  between(from: number, to: number): number {
    return from + this.int(to - from + 1);
  }

  /** True in `percent` of a hundred cases. */
  likely(percent: number): boolean {
    return this.int(100) < percent;
  }

  pick<T>(list: readonly T[]): T {
    const one = list[this.int(list.length)];
    if (one === undefined) throw new Error("There is nothing to pick from.");
    return one;
  }

  /** Plain text of about so many tokens. */
  prose(tokens: number): string {
    const words: string[] = [];
    for (let chars = 0; chars < tokens * 4;) {
      const word = this.pick(WORDS);
      const figure = this.#figures && words.length % 24 === 5 ? ` ${this.int(9_000)}` : "";
      words.push(words.length % 12 === 11 ? `${word}.` : `${word}${figure}`);
      chars += word.length + 1;
    }
    return words.join(" ");
  }
}

const WORDS =
  "account answer because before between branch button change check column could customer delivery details different evening every file find first follow handle happen instead invoice keep later letter listen manage matter meeting moment monitor morning nothing number office option order other parcel paper people please point price problem question reason record report request result return route second should signal simple single something station status still street system table talk there thing think ticket together tomorrow total under update value version wait warehouse whole without work would yesterday".split(
    " ",
  );
