import { backOff } from "../base/time.ts";
import { PerdureError } from "../base/error.ts";
import type { ChatErrorClassification } from "../store/usage.ts";

/** One earlier try of a step. */
export interface AttemptFact {
  /** Its place in the list of models. */
  readonly model: number;
  /** `cut`: the process died, or nobody saw the end. */
  readonly outcome: "ok" | "error" | "cut";
  /** Of an error; null counts as `unknown`. */
  readonly errorClass: ChatErrorClassification | null;
  /** How long the provider asked to wait. */
  readonly retryAfterMs: number | null;
  /** When it ended, in milliseconds since the epoch. */
  readonly settledAt: number;
}

/** How often and how fast to try. */
export interface AttemptPolicy {
  /** How many models there are, the preferred one first. */
  readonly models: number;
  /** Further tries of one model after its first error. */
  readonly maxRetries?: number | undefined;
  /** The first wait; it doubles with each error of the same model. */
  readonly baseDelayMs?: number | undefined;
  /** Never wait longer: rather take the next model. */
  readonly maxDelayMs?: number | undefined;
}

/** What to do next in a step: call a model, not before a time (0: at once), or give up. */
export type NextAttempt =
  | { readonly kind: "call"; readonly model: number; readonly notBefore: number }
  | { readonly kind: "end"; readonly errorClass: ChatErrorClassification };

const DEFAULT_RETRIES = 2;
const DEFAULT_BASE_DELAY_MS = 1000;
const DEFAULT_MAX_DELAY_MS = 60_000;
/** An error that nobody understands may be chance once. */
const UNKNOWN_RETRIES = 1;

/**
 * The next try of a step, from the earlier ones alone (oldest first), so that a process that takes over decides as the
 * one that died would have. The policy: start with the first model. What was **cut** is tried again with the same
 * model at once, and is no retry. After **rate_limit** and **transient** errors wait as long as the provider asked,
 * else one base delay, doubled with each further error of this model and never more than the longest delay, and try
 * the same model again, `maxRetries` times; if the provider asks for more than the longest delay, do not wait at all
 * but take the next model. An **unknown** error is tried again once. After **fatal** and **context_overflow** errors,
 * and when a model's tries are used up, take the next model at once; models are never gone back to. No model left:
 * the step ends with the class of the last error. There is no chance in it.
 *
 * If the conversation was compacted after an overflow, give only the tries since then. An `ok` as the last fact means
 * that its answer was of no use to the caller: the same model is asked again, at once.
 * @throws PerdureError `bad_config` when there is no model.
 */
export function nextAttempt(facts: readonly AttemptFact[], policy: AttemptPolicy): NextAttempt {
  if (!(policy.models >= 1)) throw new PerdureError("bad_config", "There is no model to call: give at least one.");
  const last = facts.at(-1);
  if (last === undefined) return { kind: "call", model: 0, notBefore: 0 };
  // The list may have become shorter since then.
  if (last.outcome !== "error") return { kind: "call", model: Math.min(last.model, policy.models - 1), notBefore: 0 };

  const errorClass = last.errorClass ?? "unknown";
  const wait = waitOf(last, errorsInARow(facts, last.model), errorClass, policy);
  if (wait !== undefined && last.model < policy.models) {
    return { kind: "call", model: last.model, notBefore: last.settledAt + wait };
  }
  const next = last.model + 1;
  return next < policy.models ? { kind: "call", model: next, notBefore: 0 } : { kind: "end", errorClass };
}

/** The errors of the last model since it was taken, or since it last answered. Cuts in between do not count. */
function errorsInARow(facts: readonly AttemptFact[], model: number): AttemptFact[] {
  const errors: AttemptFact[] = [];
  for (const fact of facts.toReversed()) {
    if (fact.model !== model || fact.outcome === "ok") break;
    if (fact.outcome === "error") errors.push(fact);
  }
  return errors;
}

/** How long to wait before the same model is tried again; undefined: it is not. */
function waitOf(
  last: AttemptFact,
  errors: readonly AttemptFact[],
  errorClass: ChatErrorClassification,
  policy: AttemptPolicy,
): number | undefined {
  const {
    maxRetries = DEFAULT_RETRIES,
    baseDelayMs = DEFAULT_BASE_DELAY_MS,
    maxDelayMs = DEFAULT_MAX_DELAY_MS,
  } = policy;
  if (errorClass === "fatal" || errorClass === "context_overflow") return undefined;
  if (errors.length > maxRetries) return undefined;
  if (errorClass === "unknown" && errors.filter(isUnknown).length > UNKNOWN_RETRIES) return undefined;
  if (last.retryAfterMs !== null) return last.retryAfterMs > maxDelayMs ? undefined : Math.max(0, last.retryAfterMs);
  return backOff(errors.length, baseDelayMs, maxDelayMs);
}

function isUnknown({ errorClass }: AttemptFact): boolean {
  return errorClass === null || errorClass === "unknown";
}
