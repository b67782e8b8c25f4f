// For tests of the crash matrix: what drives a program, and what is read off the facts that it told.
import { join } from "node:path";
import { killPrograms } from "perdure/testing";
import type { CrashMatrixReport, CrashOutcome, Fact, Life, Program } from "perdure/testing";
import { afterEach, expect } from "vitest";
import { runFolder } from "../support/run-folder.ts";

/** A call that server code of the program is to make. */
export interface Call {
  readonly type: "call";
  readonly id: string;
  readonly agent: string;
  readonly name: string;
  readonly method: string;
  readonly args: readonly unknown[];
}
export type Command = Call | { readonly type: "idle?"; readonly id: number } | { readonly type: "stop" };

/** Hundreds of lives load the same modules. */
export const env = { NODE_COMPILE_CACHE: join(runFolder(), "compiled") };

/** A matrix is many processes. */
export const MATRIX_MS = 900_000;

afterEach(async () => {
  const left = await killPrograms();
  if (left > 0) throw new Error(`${left} programs were left behind`);
});

/** One agent, as the driver sees it. */
export interface Remote {
  /** Calls a method. Resolves with what the caller was told; the fact has the id `method` or the one given. */
  call<T = unknown>(method: string, ...args: unknown[]): Promise<T>;
  as(id: string): Remote;
}

/** An agent of the program. */
export function remote(child: Program, agent: string, name = "one", as?: string): Remote {
  return {
    as: (id) => remote(child, agent, name, id),
    async call<T>(method: string, ...args: unknown[]): Promise<T> {
      const id = as ?? method;
      const call: Call = { type: "call", id, agent, name, method, args };
      await child.send(call);
      const fact = await child.waitFor((one) => (one.type === "acked" || one.type === "refused") && one.id === id);
      if (fact.type === "refused") throw new Error(`${agent}/${name} ${method}: ${String(fact.error)}`);
      // Written by the agents of these tests; JSON is between the two.
      return fact.value as T;
    },
  };
}

/**
 * Waits until everything is done that the agents had accepted. Nobody uses them for that.
 * @returns the ids of all agents that have rows
 */
export async function untilIdle(child: Program): Promise<string[]> {
  const id = ofType(child.facts, "idle").length;
  const command: Command = { type: "idle?", id };
  await child.send(command);
  const { agents } = await child.waitFor((fact) => fact.type === "idle" && fact.id === id);
  return agents as string[];
}

/** What a caller was told, by the id of the call. */
export function ackedIn(facts: readonly Fact[]): Map<string, unknown> {
  return new Map(facts.filter(({ type }) => type === "acked").map(({ id, value }) => [String(id), value]));
}

/** Facts of one type. */
export function ofType(facts: readonly Fact[], type: string): Fact[] {
  return facts.filter((fact) => fact.type === type);
}

/** Facts of all lives, the last one included. */
export function allFacts({ before, after }: CrashOutcome<unknown>): Fact[] {
  return [...before.facts, ...after.facts];
}

/** Facts of each life after the first. A run that never came to its kill has only the first. */
export function laterLives({ before, after }: CrashOutcome<unknown>): (readonly Fact[])[] {
  return [...before.lives.map((life: Life) => life.facts), after.facts].slice(1);
}

/** Nothing of an agent failed behind the scenes, in any life. */
export function expectNoFailure(outcome: CrashOutcome<unknown>): void {
  expect(ofType(allFacts(outcome), "failed")).toEqual([]);
}

/**
 * The points of the matrix were all commits of the undisturbed run, or those of `thinned(step)`, and there were enough of
 * them to mean something: `atLeast` so many when it was all of them.
 */
export function expectCovered(matrix: CrashMatrixReport<unknown>, atLeast: number, thin?: number): void {
  const step = thin === undefined ? STEP : 2 * thin;
  const { killed, unreached, reference } = matrix;
  const points = killed.length + unreached.length;
  const { commits } = reference;
  const some = isWhole ? [] : [Math.floor(commits / step), Math.ceil(commits / step)];
  expect([commits, ...some]).toContain(points);
  expect(killed.length).toBeGreaterThanOrEqual(points === commits ? atLeast : Math.max(1, Math.floor(atLeast / step)));
}

/** Of how many points one is taken where a test does not say: see `vitest.config.ts`. */
const STEP = Number(process.env.PERDURE_CRASH_STEP ?? 1);

/** Nothing is to be left out. */
export const isWhole = STEP === 1;

/** Every `2 * step`th point, others for each `from`; all of them when nothing is to be left out. */
export function thinned(step: number, from = 1): (commits: number) => number[] {
  return isWhole ? pointsOf(1, 1) : pointsOf(2 * step, from);
}

/**
 * Every `step`th point, others for each `from`: for matrices with more than one kill, where all would take too long. Half
 * of these when runs are to be quick.
 */
export function every(step: number, from: number): (commits: number) => number[] {
  return pointsOf(isWhole ? step : 2 * step, from);
}

function pointsOf(step: number, from: number): (commits: number) => number[] {
  return (commits) => Array.from({ length: commits }, (_, index) => index + 1).filter((n) => n % step === from % step);
}
