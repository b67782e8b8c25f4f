import { PerdureError } from "../base/error.ts";
import type { UsageScope } from "../store/usage-total.ts";

/** How much may be used. Without a number there is no limit of that kind. */
export interface Budget {
  /** Input and output tokens, cached ones included. */
  readonly maxTokens?: number;
  /** US dollars. Models without a known price are refused while any budget has this. */
  readonly maxCost?: number;
  /** From this part of a limit on (0 to 1), a person is asked once before the next call. */
  readonly soft?: number;
}

/** Limits by what they count: one turn, one session, or all that the agent ever does. */
export interface Budgets {
  readonly turn?: Budget | undefined;
  readonly session?: Budget | undefined;
  readonly agent?: Budget | undefined;
}

/** Tokens, and US dollars. */
export interface Amount {
  readonly tokens: number;
  readonly cost: number;
}

/** One budget and how it stands. */
export interface BudgetState {
  readonly scope: UsageScope;
  readonly budget: Budget | undefined;
  /** What was charged, and what calls under way may still cost. */
  readonly used: Amount;
  /** What a person allowed on top; `undefined` if nobody was asked or nobody agreed. */
  readonly grant: Amount | undefined;
}

/** Why a call may not be made. */
export interface OverLimit {
  readonly over: UsageScope;
  /** `hard`: it might not fit, ask for more. `soft`: it fits, but it is time to ask a person. */
  readonly kind: "soft" | "hard";
  readonly what: "tokens" | "cost";
  /** The limit with all grants (`hard`), or where asking begins (`soft`). */
  readonly limit: number;
  /** Before this call. */
  readonly used: number;
  /** The most that this call may use. */
  readonly needed: number;
}

/** Sums of dollars are whole billionths; less than half of one is noise of the arithmetic. */
const HALF_A_BILLIONTH = 0.5e-9;

/**
 * Whether a call fits all budgets. Pure.
 *
 * - **hard**: what is used plus the most that the call can use is above the limit plus what was granted. Looked at
 *   first, the narrowest scope first.
 * - **soft**: what is used has reached `soft` of the limit, and nobody granted anything for this turn, session or
 *   agent. Any grant, of 0 too, is the answer: the question is not asked again, and the next stop is the hard limit.
 */
export function checkBudget(call: Amount, states: readonly BudgetState[]): "ok" | OverLimit {
  for (const state of states) {
    for (const what of ["tokens", "cost"] as const) {
      const max = maxOf(state.budget, what);
      if (max === undefined) continue;
      const limit = max + (state.grant?.[what] ?? 0);
      const used = state.used[what];
      if (used + call[what] > limit + HALF_A_BILLIONTH) {
        return { over: state.scope, kind: "hard", what, limit, used, needed: call[what] };
      }
    }
  }
  for (const state of states) {
    const soft = state.budget?.soft;
    if (soft === undefined || state.grant !== undefined) continue;
    for (const what of ["tokens", "cost"] as const) {
      const max = maxOf(state.budget, what);
      if (max === undefined) continue;
      const limit = max * soft;
      const used = state.used[what];
      if (used + HALF_A_BILLIONTH >= limit) {
        return { over: state.scope, kind: "soft", what, limit, used, needed: call[what] };
      }
    }
  }
  return "ok";
}

/** @throws PerdureError `bad_config` for an invalid budget: it would be no limit, and nobody would know. */
export function checkBudgets(budgets: Budgets): void {
  for (const scope of ["turn", "session", "agent"] as const) {
    const budget = budgets[scope];
    if (budget === undefined) continue;
    const { maxTokens = 0, maxCost = 0, soft = 1 } = budget;
    if (!(maxTokens >= 0 && maxCost >= 0)) {
      throw new PerdureError("bad_config", `The ${scope} budget must have limits of 0 or more.`);
    }
    if (!(soft >= 0 && soft <= 1)) {
      throw new PerdureError(
        "bad_config",
        `"soft" of the ${scope} budget must be a fraction of its limits, from 0 to 1.`,
      );
    }
  }
}

/** Whether any budget counts money. */
export function capsCost(budgets: Budgets): boolean {
  return [budgets.turn, budgets.session, budgets.agent].some((budget) => budget?.maxCost !== undefined);
}

function maxOf(budget: Budget | undefined, what: "tokens" | "cost"): number | undefined {
  return what === "tokens" ? budget?.maxTokens : budget?.maxCost;
}
