import type { Sql } from "../port.ts";
import type { Usage } from "../ledger/token-usage.ts";
import { readCell, writeCell } from "../store/cell.ts";
import { type CountText, unitsOfText, unitsOfWide } from "./text-units.ts";

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

/** How far each model's tokens differ from the estimate, learned from providers' counts. One instance per life of an agent. */
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

/** What a request is made of, in units: models differ in each of these by another factor. */
export interface KindUnits {
  /** English, code and other alphabets. */
  readonly text: number;
  /** Chinese, Japanese, Korean, emoji: wherever they are. */
  readonly wide: number;
  /** What tools are called with, what they return, and their schemas. */
  readonly data: number;
  /** Files, and what providers add around messages and calls. */
  readonly rest: number;
}

/** What is known about kinds: tokens per unit of each, and how sure that is. */
interface KindFactors {
  readonly factors: readonly number[];
  /** How much each factor may still be wrong, and together with which other: a symmetric matrix. */
  readonly spread: readonly (readonly number[])[];
}

/** The order in which factors are kept. */
const KINDS = ["text", "wide", "data", "rest"] as const;
/** How far from the one factor of the model a kind may be, before anything is known (as a variance). */
const FIRST_SPREAD = 0.5;
/** How far a count may be from what the factors say, for other reasons (as a variance). */
const NOISE = 0.02;
/** How much less sure each factor is at the next call: conversations change. */
const DRIFT = 0.002;

/** The factors of kinds before it is known that they differ. */
function sameForAll(factor: number): KindFactors {
  return {
    factors: KINDS.map(() => factor),
    spread: KINDS.map((_, row) => KINDS.map((_kind, column) => (row === column ? FIRST_SPREAD : 0))),
  };
}

/** What is kept of it: all of it, so that a life goes on as the one before would have. */
function toNumbers({ factors, spread }: KindFactors): number[] {
  return [...factors, ...spread.flat()];
}

/** @returns undefined for what {@link toNumbers} has not made. */
function fromNumbers(kept: readonly number[]): KindFactors | undefined {
  const size = KINDS.length;
  const factors = kept.slice(0, size);
  if (kept.length !== size + size * size || !kept.every(Number.isFinite) || !factors.every((one) => one > 0)) {
    return undefined;
  }
  const spread = factors.map((_, row) => kept.slice(size + row * size, size + (row + 1) * size));
  return spread.every((row, index) => (row[index] ?? 0) > 0) ? { factors, spread } : undefined;
}

/**
 * What is known after a call: least squares over all calls, old ones counting less. The last one alone could not tell kinds
 * apart, since requests of a growing conversation have nearly the same mix. `ratio`: tokens per unit of all that was sent.
 */
function correctKinds(
  { factors, spread }: KindFactors,
  units: KindUnits,
  ratio: number,
  clamped: (factor: number) => number,
): KindFactors {
  const sum = KINDS.reduce((all, kind) => all + units[kind], 0);
  const shares = KINDS.map((kind) => units[kind] / sum);
  const along = spread.map((row) => dot(row, shares));
  const variance = NOISE + dot(along, shares);
  const error = ratio - dot(factors, shares);
  const left = (row: number, column: number) => ((along[row] ?? 0) * (along[column] ?? 0)) / variance;
  // Only ever added to the diagonal, so that it stays a matrix of variances; never more than at the beginning.
  const drift = (cell: number) => (cell < FIRST_SPREAD ? DRIFT : 0);
  return {
    factors: factors.map((factor, index) => clamped(factor + (error * (along[index] ?? 0)) / variance)),
    spread: spread.map((row, r) => row.map((cell, c) => cell - left(r, c) + (r === c ? drift(cell) : 0))),
  };
}

/** Counts each kind of text by its own factor. */
export function countKinds([text = 1, wide = 1, data = 1]: readonly number[]): CountText {
  return (one, as) => {
    const own = unitsOfWide(one);
    return wide * own + (as === "data" ? data : text) * (unitsOfText(one) - own);
  };
}

// Each of these counts one kind alone. They are constants: what messages weigh is remembered for each.
const nothing: CountText = () => 0;
const onlyWide: CountText = (text) => unitsOfWide(text);
const onlyData: CountText = (text, as) => (as === "data" ? unitsOfText(text) - unitsOfWide(text) : 0);

/** How much of each kind there is in what is weighed. @param all what it weighs, if that is known */
export function kindsOf(weigh: (count: CountText) => number, all = weigh(unitsOfText)): KindUnits {
  const rest = weigh(nothing);
  const wide = weigh(onlyWide) - rest;
  const data = weigh(onlyData) - rest;
  return { text: all - rest - wide - data, wide, data, rest };
}

function dot(left: readonly number[], right: readonly number[]): number {
  return left.reduce((sum, value, index) => sum + value * (right[index] ?? 0), 0);
}
