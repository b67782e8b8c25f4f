import { type CountText, unitsOfText, unitsOfWide } from "./text-units.ts";

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
export interface KindFactors {
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
export function sameForAll(factor: number): KindFactors {
  return {
    factors: KINDS.map(() => factor),
    spread: KINDS.map((_, row) => KINDS.map((_kind, column) => (row === column ? FIRST_SPREAD : 0))),
  };
}

/** What is kept of it: all of it, so that a life goes on as the one before would have. */
export function toNumbers({ factors, spread }: KindFactors): number[] {
  return [...factors, ...spread.flat()];
}

/** @returns undefined for what {@link toNumbers} has not made. */
export function fromNumbers(kept: readonly number[]): KindFactors | undefined {
  const size = KINDS.length;
  const factors = kept.slice(0, size);
  if (kept.length !== size + size * size || !kept.every(Number.isFinite) || !factors.every((one) => one > 0)) {
    return undefined;
  }
  const spread = factors.map((_, row) => kept.slice(size + row * size, size + (row + 1) * size));
  return spread.every((row, index) => (row[index] ?? 0) > 0) ? { factors, spread } : undefined;
}

/**
 * What is known after a call: least squares over all calls, of which old ones count less. A growing conversation has
 * nearly the same mix in each request, so that a step along the last one alone would not tell kinds apart.
 * @param ratio tokens per unit of all that was sent.
 */
export function correctKinds(
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

/** How much of each kind there is in what is weighed. */
export function kindsOf(weigh: (count: CountText) => number): KindUnits {
  const rest = weigh(nothing);
  const wide = weigh(onlyWide) - rest;
  const data = weigh(onlyData) - rest;
  return { text: weigh(unitsOfText) - rest - wide - data, wide, data, rest };
}

function dot(left: readonly number[], right: readonly number[]): number {
  return left.reduce((sum, value, index) => sum + value * (right[index] ?? 0), 0);
}
