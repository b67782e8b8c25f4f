/*
 * The life of a step
 *
 *              ┌───────────────────────────────────────────────┐
 *              ▼                                               │
 *   ──► call (one model call, tried until it is settled) ──► run (the calls it asked for) ──► …
 *              │                                               │
 *              └──► done                                       └──► wait (a client or a person has to answer)
 *
 * Nothing here is remembered in memory: how many model calls of the turn are settled is counted in the ledger, what
 * they said and what became of the tools they asked for is read from the answer, which is folded from the stream log.
 * So after a crash the same facts give the same move. A model call that was cut is not settled, and is made again; a
 * tool call that was cut has its intent on the books, and its own policy says what becomes of it.
 */

/** Where one tool call of the last step stands, as far as the next move depends on it. */
export type CallStanding =
  /** Has its result, error or denial. */
  | "settled"
  /** Ours to run, and may run now. */
  | "ready"
  /** A client or a person has to answer first. */
  | "waiting";

/** What is known of a turn between two moves. */
export interface StepFacts {
  /** Model calls of this turn that are settled. */
  readonly called: number;
  readonly maxSteps: number;
  /** The calls of the last step, this turn's or the one that it goes on with. */
  readonly calls: readonly CallStanding[];
  /** The app's conditions say that it is enough. Only asked for after a step of this turn. */
  readonly stop: boolean;
  /** The model is to see the results of the last step, or something that was said meanwhile. */
  readonly steered: boolean;
  /** The last step asked a person for more budget, and was refused. */
  readonly refused: boolean;
}

/** What to do next. */
export type StepMove =
  | { readonly kind: "call"; readonly step: number }
  | { readonly kind: "run" }
  | { readonly kind: "wait" }
  | { readonly kind: "done"; readonly why: "answered" | "steps" | "stopped" | "refused" };

/** Decides by the facts. Pure. */
export function nextStep(facts: StepFacts): StepMove {
  const { called, calls } = facts;
  if (calls.includes("ready")) return { kind: "run" };
  if (calls.includes("waiting")) return { kind: "wait" };
  if (facts.refused) return { kind: "done", why: "refused" };
  // A turn that has not asked its model yet has something to ask, whatever it goes on with.
  if (called === 0) return { kind: "call", step: 0 };
  if (facts.stop) return { kind: "done", why: "stopped" };
  if (calls.length === 0 && !facts.steered) return { kind: "done", why: "answered" };
  if (called >= facts.maxSteps) return { kind: "done", why: "steps" };
  return { kind: "call", step: called };
}
