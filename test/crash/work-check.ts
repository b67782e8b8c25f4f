// What holds for every callback of the queue and of schedules, however often the process died.
import type { CrashOutcome, Fact } from "perdure/testing";
import { expect } from "vitest";
import { allFacts, expectNoFailure, laterLives, ofType } from "./drive.ts";

/** What the program that works has left. */
export interface WorkResult {
  readonly state: { readonly n: number };
  readonly runs: readonly { readonly key: string; readonly occurrence: string }[];
}

/** A callback was called. */
export interface Ran {
  readonly key: string;
  readonly occurrence: string;
  readonly attempt: number;
  readonly id: string;
}

export function ranIn(facts: readonly Fact[]): Ran[] {
  return ofType(facts, "ran").map((fact) => ({
    key: String(fact.key),
    occurrence: String(fact.occurrence),
    attempt: Number(fact.attempt),
    id: String(fact.id),
  }));
}

/** Occurrences in the order of their first run, with how often each run left its row. */
export function rowsOf(result: WorkResult, key: string): number[] {
  const rows = result.runs.filter((run) => run.key === key);
  return [...Map.groupBy(rows, (run) => run.occurrence).values()].map((group) => group.length);
}

/** No callback may run that was settled, and none that had no row when its life began. */
export function expectRunsAreOpen(outcome: CrashOutcome<WorkResult>): void {
  expectNoFailure(outcome);
  const facts = allFacts(outcome);
  for (const later of laterLives(outcome)) {
    const open = ofType(later, "woken").flatMap((fact) => fact.open as { id: string }[]);
    for (const { id } of ranIn(later)) expect(open.map((one) => one.id)).toContain(id);
  }
  facts.forEach((fact, at) => {
    if (fact.type !== "settled" || fact.ok !== true) return;
    const occurrence = ranIn(facts.slice(0, at)).findLast(({ id }) => id === fact.id)?.occurrence;
    const later = ranIn(facts.slice(at + 1)).filter((run) => run.occurrence === occurrence);
    expect(later, "a settled callback ran again").toEqual([]);
  });
}

/** Attempts of one occurrence count up: none is given twice, whichever life made it. */
export function expectAttemptsCountUp(outcome: CrashOutcome<WorkResult>): void {
  for (const runs of Map.groupBy(ranIn(allFacts(outcome)), ({ occurrence }) => occurrence).values()) {
    const attempts = runs.map(({ attempt }) => attempt);
    expect(attempts).toEqual([...new Set(attempts)].sort((a, b) => a - b));
  }
}
