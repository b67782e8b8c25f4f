import { format } from "../foundation/section.ts";

/** What a figure has to be to count as light. */
export type Aim =
  | { readonly atMost: number }
  | { readonly atLeast: number }
  /** So many times the floor, and `plus` in the row's unit on top of it. */
  | { readonly timesFloor: number; readonly plus?: number };

/** One line of the table: a figure of ours, the same work done bare in the same run, and what we aim at. */
export interface Row {
  readonly what: string;
  readonly unit: string;
  readonly ours: number;
  /** The same work by the floor, in the same run and unit. */
  readonly floor?: number;
  /** What the floor is, when it is not the bare server of `floor.ts`. */
  readonly against?: string;
  /** What other servers took, by their name, where that was measured. */
  readonly others?: Readonly<Record<string, number>>;
  readonly aim: Aim;
}

export type Verdict = "met" | "missed" | "far";

/** How far an aim may be missed before the check fails: a busy machine costs that much. */
export const TOLERANCE = 1.25;

/** Whether a row is as light as it has to be; `far` when it misses by more than what is tolerated. */
export function verdictOf(row: Row): Verdict {
  const excess = excessOf(row);
  // What could not be measured is no success.
  return excess <= 1 ? "met" : excess <= TOLERANCE ? "missed" : "far";
}

/** How many times more than the aim allows; not a number when there is nothing to compare. */
function excessOf(row: Row): number {
  const { aim, ours } = row;
  if ("atLeast" in aim) return aim.atLeast / ours;
  return ours / limitOf(row);
}

/** The aim as a number in the row's unit. */
export function limitOf({ aim, floor }: Row): number {
  if ("atLeast" in aim) return aim.atLeast;
  if ("atMost" in aim) return aim.atMost;
  return floor === undefined ? Number.NaN : floor * aim.timesFloor + (aim.plus ?? 0);
}

/** The aim as people read it. */
export function aimText({ aim, unit }: Row): string {
  if ("atLeast" in aim) return `≥ ${format(aim.atLeast)} ${unit}`;
  if ("atMost" in aim) return `≤ ${format(aim.atMost)} ${unit}`;
  const plus = aim.plus === undefined ? "" : ` + ${format(aim.plus)} ${unit}`;
  return `≤ ${aim.timesFloor} × floor${plus}`;
}
