import type { Sql } from "../port.ts";
import type { Usage } from "../ledger/token-usage.ts";
import { readCell, writeCell } from "../store/cell.ts";
import {
  correctKinds,
  countKinds,
  fromNumbers,
  type KindFactors,
  type KindUnits,
  sameForAll,
  toNumbers,
} from "./kinds.ts";
import { type CountText, unitsOfText } from "./text-units.ts";

/** What is known about how a model counts. */
export interface Learned {
  /** Tokens per unit. */
  readonly factor: number;
  /** How many calls it was learned from. */
  readonly samples: number;
  /** The same for each kind of text, once a call has said how much of each it had. */
  readonly kinds?: KindFactors | undefined;
}

/** A model call that was answered. */
interface CountedCall {
  /** All that was sent: instructions, tools and messages. */
  readonly units: number;
  /** How much of each kind that was, where texts are estimated. */
  readonly kinds?: KindUnits | undefined;
  readonly usage: Usage | undefined;
}

export const NOTHING_LEARNED: Learned = { factor: 1, samples: 0 };
/** However often it is wrong, an estimate is never corrected by more than this. */
const MIN_FACTOR = 0.5;
const MAX_FACTOR = 2;
/** What the newest call counts, once there are some: the text of a conversation changes. */
const NEWEST_WEIGHT = 0.3;
/** In a short request, what a provider adds is more than what was sent. */
const MIN_UNITS = 250;
/** So many times less or more than what was sent is no count of it. */
const ABSURD = 4;
/** A factor that has moved by less is not worth a write. */
const WORTH_WRITING = 0.02;
/** A kind is counted in steps of this, so that not everything is weighed anew after each call. */
const STEP = 0.1;
const PREFIX = "learned:";

/** What is known after a call. Usage that is empty, or says what cannot be, changes nothing. */
export function correctFactor(before: Learned, { units, kinds, usage }: CountedCall): Learned {
  const ratio = usage === undefined ? Number.NaN : usage.input / units;
  if (!(units >= MIN_UNITS) || !(ratio >= 1 / ABSURD) || !(ratio <= ABSURD)) return before;
  const samples = before.samples + 1;
  const weight = Math.max(NEWEST_WEIGHT, 1 / samples);
  const factor = clamped(before.factor + weight * (clamped(ratio) - before.factor));
  if (kinds === undefined) return { ...before, factor, samples };
  const known = before.kinds ?? sameForAll(factor);
  return { factor, samples, kinds: correctKinds(known, kinds, clamped(ratio), clamped) };
}

/** What is stored about a model. What cannot be read is not known. */
export function readLearned(db: Sql, model: string): Learned {
  const [factor, samples, ...kinds] = (readCell(db, PREFIX + model) ?? "").split(" ").map(Number);
  if (factor === undefined || samples === undefined || !(factor > 0) || !(samples > 0)) return NOTHING_LEARNED;
  const known = fromNumbers(kinds);
  const bounded = known && { kinds: { ...known, factors: known.factors.map(clamped) } };
  return { factor: clamped(factor), samples, ...bounded };
}

export function writeLearned(db: Sql, model: string, { factor, samples, kinds }: Learned): void {
  // With kinds, to the last digit: how texts are counted then depends on it.
  const all = kinds === undefined ? [factor.toFixed(4), samples] : [factor, samples, ...toNumbers(kinds)];
  writeCell(db, PREFIX + model, all.join(" "));
}

/** What is known about a model in one life. */
interface Entry {
  now: Learned;
  stored: Learned;
  /** How its texts are counted, and by which factors of kinds, each for one of the model. */
  count: CountText;
  used: readonly number[];
}

/**
 * How much each model's tokens differ from the estimate, learned from what its provider counts. One for each time that
 * an agent is in memory: it reads a model's row once, and writes it when the factor has moved, or those of kinds have.
 */
export class LearnedFactors {
  readonly #db: Sql;
  readonly #rowOf: (model: string) => string;
  readonly #models = new Map<string, Entry>();

  /** @param rowOf under what name a model's row is kept: one for each way in which its texts are counted. */
  constructor(db: Sql, rowOf: (model: string) => string = (model) => model) {
    this.#db = db;
    this.#rowOf = rowOf;
  }

  /** Tokens per unit of a model (`provider/modelId`); 1 as long as nothing is known. */
  of(model: string): number {
    return this.#entry(this.#rowOf(model)).now.factor;
  }

  /** How the estimate counts the texts of a model: {@link unitsOfText}, or each kind by what is known of it. */
  countOf(model: string): CountText {
    return this.#entry(model).count;
  }

  /** Takes in what a call used. In the transaction that settles the call. @returns the factor after it. */
  learn(model: string, call: CountedCall): number {
    const row = this.#rowOf(model);
    const entry = this.#entry(row);
    entry.now = correctFactor(entry.now, call);
    const { factor, kinds } = entry.now;
    const { stored } = entry;
    // How texts are counted must be the same after a crash.
    if (kinds !== stored.kinds || Math.abs(factor - stored.factor) > WORTH_WRITING * stored.factor) {
      writeLearned(this.#db, row, entry.now);
      entry.stored = entry.now;
    }
    useKinds(entry);
    return factor;
  }

  #entry(row: string): Entry {
    const known = this.#models.get(row);
    if (known !== undefined) return known;
    const now = readLearned(this.#db, row);
    const entry = { now, stored: now, count: unitsOfText, used: [] };
    useKinds(entry);
    this.#models.set(row, entry);
    return entry;
  }
}

/** Counts kinds apart if that makes a difference. By what is known alone: the same in the next life. */
function useKinds(entry: Entry): void {
  const { factor, kinds } = entry.now;
  if (kinds === undefined) return;
  const wanted = kinds.factors.map((one) => STEP * Math.round(one / factor / STEP));
  if (wanted.every((one, index) => one === (entry.used[index] ?? 1))) return;
  entry.used = wanted;
  entry.count = wanted.every((one) => one === 1) ? unitsOfText : countKinds(wanted);
}

function clamped(factor: number): number {
  return Math.min(MAX_FACTOR, Math.max(MIN_FACTOR, factor));
}
