// What the facts of programs with fibers say.
import type { CrashOutcome, Fact } from "perdure/testing";
import { expect } from "vitest";
import { allFacts, expectNoFailure, laterLives, ofType } from "./drive.ts";

/** One fiber as it is left. */
export interface FiberLeft {
  readonly id: string;
  readonly name: string;
  readonly kind: string;
  readonly key?: string;
  readonly status: string;
  readonly snapshot?: unknown;
  readonly result?: unknown;
  readonly error?: string;
}

/** Which steps of a fiber ran, over all lives, in order. */
export function stepsOf(facts: readonly Fact[], key: string): number[] {
  return ofType(facts, "step")
    .filter((fact) => fact.key === key)
    .map(({ step }) => Number(step));
}

/** The ids that were not settled when a life began. */
export function openIn(facts: readonly Fact[]): string[] {
  return ofType(facts, "woken")
    .flatMap(({ open }) => open as { id: string }[])
    .map(({ id }) => id);
}

/** Nothing settled comes back, nothing runs that had no row, and no row changes its id. */
export function expectFibersKeepTheirWord(outcome: CrashOutcome<readonly FiberLeft[]>): void {
  expectNoFailure(outcome);
  const facts = allFacts(outcome);
  facts.forEach((fact, at) => {
    if (fact.type !== "settled" || fact.status === "interrupted") return;
    const later = facts
      .slice(at + 1)
      .filter(({ type, id }) => (type === "step" || type === "recovered") && id === fact.id);
    expect(later, "a settled fiber ran again").toEqual([]);
  });
  for (const life of laterLives(outcome)) {
    const open = openIn(life);
    for (const { id, name } of ofType(life, "recovered")) expect(open, String(name)).toContain(id);
  }
  for (const { key, id } of outcome.after.result) {
    const ids = ofType(facts, "step").filter((fact) => fact.key === key && key !== undefined);
    for (const fact of ids) expect(fact.id, String(key)).toBe(id);
  }
}
