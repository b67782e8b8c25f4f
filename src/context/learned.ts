import type { Sql } from "../port.ts";
import type { Usage } from "../session/token-usage.ts";
import { readCell, writeCell } from "../store/cell.ts";

/** What is known about how a model counts. */
export interface Learned {
  /** Tokens per unit. */
  readonly factor: number;
  /** How many calls it was learned from. */
  readonly samples: number;
}

/** A model call that was answered. */
export interface CountedCall {
  /** All that was sent: instructions, tools and messages. */
  readonly units: number;
  readonly usage: Usage | undefined;
}

export const NOTHING_LEARNED: Learned = { factor: 1, samples: 0 };
/** However often it is wrong, an estimate is never corrected by more than this. */
export const MIN_FACTOR = 0.5;
export const MAX_FACTOR = 2;
/** What the newest call counts, once there are some: the text of a conversation changes. */
const NEWEST_WEIGHT = 0.3;
/** In a short request, what a provider adds is more than what was sent. */
const MIN_UNITS = 250;
/** So many times less or more than what was sent is no count of it. */
const ABSURD = 4;
/** A factor that has moved by less is not worth a write. */
const WORTH_WRITING = 0.02;
const PREFIX = "learned:";

/** What is known after a call. Usage that is empty, or says what cannot be, changes nothing. */
export function correctFactor(before: Learned, { units, usage }: CountedCall): Learned {
  const ratio = usage === undefined ? Number.NaN : usage.input / units;
  if (!(units >= MIN_UNITS) || !(ratio >= 1 / ABSURD) || !(ratio <= ABSURD)) return before;
  const samples = before.samples + 1;
  const weight = Math.max(NEWEST_WEIGHT, 1 / samples);
  return { factor: clamped(before.factor + weight * (clamped(ratio) - before.factor)), samples };
}

/** What is stored about a model. What cannot be read is not known. */
export function readLearned(db: Sql, model: string): Learned {
  const [factor, samples] = (readCell(db, PREFIX + model) ?? "").split(" ").map(Number);
  if (factor === undefined || samples === undefined || !(factor > 0) || !(samples > 0)) return NOTHING_LEARNED;
  return { factor: clamped(factor), samples };
}

export function writeLearned(db: Sql, model: string, { factor, samples }: Learned): void {
  writeCell(db, PREFIX + model, `${factor.toFixed(4)} ${samples}`);
}

/**
 * How much each model's tokens differ from the estimate, learned from what its provider counts. One for each time that
 * an agent is in memory: it reads a model's row once, and writes it only when the factor has moved.
 */
export class LearnedFactors {
  readonly #db: Sql;
  readonly #rowOf: (model: string) => string;
  readonly #models = new Map<string, { now: Learned; stored: number }>();

  /** @param rowOf under what name a model's row is kept: one for each way in which its texts are counted. */
  constructor(db: Sql, rowOf: (model: string) => string = (model) => model) {
    this.#db = db;
    this.#rowOf = rowOf;
  }

  /** Tokens per unit of a model (`provider/modelId`); 1 as long as nothing is known. */
  of(model: string): number {
    return this.#entry(this.#rowOf(model)).now.factor;
  }

  /** Takes in what a call used. In the transaction that settles the call. @returns the factor after it. */
  learn(model: string, call: CountedCall): number {
    const row = this.#rowOf(model);
    const entry = this.#entry(row);
    entry.now = correctFactor(entry.now, call);
    const { factor } = entry.now;
    if (Math.abs(factor - entry.stored) > WORTH_WRITING * entry.stored) {
      writeLearned(this.#db, row, entry.now);
      entry.stored = factor;
    }
    return factor;
  }

  #entry(row: string): { now: Learned; stored: number } {
    const known = this.#models.get(row);
    if (known !== undefined) return known;
    const now = readLearned(this.#db, row);
    const entry = { now, stored: now.factor };
    this.#models.set(row, entry);
    return entry;
  }
}

function clamped(factor: number): number {
  return Math.min(MAX_FACTOR, Math.max(MIN_FACTOR, factor));
}
