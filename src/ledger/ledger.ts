import { PerdureError } from "../base/error.ts";
import type { AgentEvents, CallFacts } from "../base/event.ts";
import type { AgentHost } from "../port.ts";
import { addBudgetGrant, deleteBudgetGrant, readBudgetGrant } from "../store/budget-grant.ts";
import { deleteLostFrames, deleteMessageFrames, type SentFacts } from "../store/frame.ts";
import {
  addUsageTotal,
  deleteUsageTotal,
  noUsage,
  readUsageTotal,
  type UsageScope,
  type UsageSums,
} from "../store/usage-total.ts";
import {
  type CallPurpose,
  deleteUsage,
  deleteUsageOf,
  endedUsageOfTurn,
  hasUsage,
  insertUsage,
  listUsage,
  openUsage,
  openUsageBelow,
  readOpenUsage,
  settledUsageOfTurn,
  settleUsage,
  turnsWithUsage,
  type UsageFilter,
  usageOfStep,
  type UsageRow,
} from "../store/usage.ts";
import {
  type Amount,
  type Budgets,
  type BudgetState,
  capsCost,
  checkBudget,
  checkBudgets,
  type OverLimit,
} from "./budget.ts";
import { type CallResult, chargeOf, type EndedCall, type LedgerEntry, resultOf, toDollars, toEntry } from "./charge.ts";
import { findPrice, NANO_DOLLARS, type Price, type PriceTable, worstCostOf } from "./prices.ts";
import { tokens } from "./token-usage.ts";

/** What the ledger asks of the app, before each call: all may change from call to call. */
interface LedgerOptions {
  budgets(): Budgets;
  prices(): PriceTable;
  /** The session that calls belong to which name none. */
  session(): string;
}

/** A model call that is about to be made. */
export interface NewCall {
  /** `newId("call")`, chosen by the caller. */
  readonly id: string;
  /** The turn that it is made for; none for work between turns. Without `seq` it is no step of the turn itself. */
  readonly turn?: { readonly id: string; readonly seq?: number } | undefined;
  readonly session?: string | undefined;
  readonly step: number;
  /** Which try of the step, from 1. */
  readonly attempt: number;
  readonly purpose: CallPurpose;
  /** `provider/modelId` */
  readonly model: string;
  /** Its place in the list of models to try. */
  readonly modelIndex: number;
  /** The most that it can use, in tokens: what is sent, and the longest answer that is allowed. */
  readonly estimate: { readonly input: number; readonly output: number };
  /** Names the bytes of the request. */
  readonly requestDigest?: string | undefined;
  /** What is stored of the request; its digest counts. */
  readonly sent?: SentFacts | undefined;
  /** What the caller knows that the model costs. Counts where the price table has no price. */
  readonly price?: Price | undefined;
}

/** The call may be made. */
interface Reserved {
  readonly ok: true;
  readonly id: string;
  /** Its number. */
  readonly seq: number;
  readonly tokens: number;
  /** US dollars; null when the model has no known price. */
  readonly cost: number | null;
}

/** The call may not be made, and nothing was written. */
export interface OverBudget extends OverLimit {
  readonly ok: false;
  /** Only because of what calls under way may still use: it may be made once they have used less. */
  readonly waits: boolean;
}

/** Sums. `tokens` and `cost` (US dollars) are what is charged; the rest is what providers reported. */
export interface UsageTotals extends UsageSums {
  /** Calls that were reserved, whatever became of them. */
  readonly calls: number;
  /** How many of them have no price: `cost` knows nothing of these. */
  readonly unpriced: number;
}

/** What to add up. */
type TotalsScope = "agent" | { readonly turn?: string; readonly session?: string };

const DEFAULT_PAGE = 100;
const MAX_PAGE = 1000;

/**
 * The ledger of all model calls: reserved at their worst case before they are made, settled at what they used, and never changed
 * after that. Synchronous, in the caller's transaction: a row is there if and only if what was written with it is.
 *
 * Never charges less than what is known to be used (see {@link Ledger.settle}), so a budget can be reached too early, but not
 * passed unnoticed. Restarts, retries and recoveries pay like everything else.
 */
export class Ledger {
  readonly #host: AgentHost;
  readonly #options: LedgerOptions;
  /** For who waits until a call that is under way has ended. */
  #freed: PromiseWithResolvers<void> | undefined;

  constructor(host: AgentHost, options: LedgerOptions) {
    this.#host = host;
    this.#options = options;
  }

  /** Whether anything limits calls: only then need their size be known before. */
  get limited(): boolean {
    const { turn, session, agent } = this.#options.budgets();
    return turn !== undefined || session !== undefined || agent !== undefined;
  }

  /**
   * Books a call before it is made, if its worst case, on top of what is charged and reserved, fits the budgets of its turn,
   * session and agent. @throws PerdureError `bad_config` when a budget counts money and the model has no known price, or for a
   * bad budget or price; `bad_input` for a bad estimate; `sql_failed` when the id is taken. Nothing is written then.
   */
  reserve(call: NewCall): Reserved | OverBudget {
    const input = tokens(call.estimate.input);
    const output = tokens(call.estimate.output);
    if (input === undefined || output === undefined) {
      throw new PerdureError("bad_input", "The estimate of a model call must be two numbers of tokens, 0 or more.");
    }
    const budgets = this.#options.budgets();
    checkBudgets(budgets);
    const price = findPrice(this.#options.prices(), call.model) ?? call.price;
    if (price === undefined && capsCost(budgets)) {
      throw new PerdureError(
        "bad_config",
        `There is a budget in dollars, but no price for ${call.model}, so it cannot be enforced. ` +
          "Add the model to the price table, or limit tokens instead.",
      );
    }
    const cost = price === undefined ? null : worstCostOf(price, input, output);
    const session = call.session ?? this.#options.session();
    const most = { tokens: input + output, cost: toDollars(cost ?? 0) };
    const states = this.#states(budgets, call.turn?.id, session);
    const verdict = checkBudget(most, states);
    if (verdict !== "ok") {
      const without = states.map((state) => ({ ...state, used: state.charged }));
      return { ok: false, ...verdict, waits: checkBudget(most, without) === "ok" };
    }
    const seq = this.#host.tx(() => {
      const keys = { turnId: call.turn?.id ?? null, session };
      const booked = insertUsage(this.#host, {
        ...keys,
        id: call.id,
        turnSeq: call.turn?.seq ?? null,
        step: call.step,
        attempt: call.attempt,
        purpose: call.purpose,
        model: call.model,
        modelIndex: call.modelIndex,
        reservedTokens: input + output,
        reservedCost: cost,
        price: price === undefined ? null : JSON.stringify(price),
        requestDigest: call.requestDigest ?? null,
        ...call.sent,
        startedAt: this.#host.clock.now(),
      });
      this.#add(keys, {
        ...noUsage,
        calls: 1,
        unpriced: price === undefined ? 1 : 0,
        reservedTokens: input + output,
        reservedCost: cost ?? 0,
      });
      const usd = cost === null ? null : toDollars(cost);
      this.#tell("call:reserved", { ...factsOf({ ...call, ...keys }), tokens: input + output, usd });
      return booked;
    });
    return { ok: true, id: call.id, seq, tokens: input + output, cost: cost === null ? null : toDollars(cost) };
  }

  /** When a call that is under way now has ended, and there may be room for one that {@link OverBudget.waits}. */
  get freed(): Promise<void> {
    return (this.#freed ??= Promise.withResolvers()).promise;
  }

  /** What a model (`provider/modelId`) costs, if that is known. @throws PerdureError `bad_config` */
  priceOf(model: string): Price | undefined {
    return findPrice(this.#options.prices(), model);
  }

  /** Whether a call of this id was ever reserved. */
  knows(id: string): boolean {
    return hasUsage(this.#host, id);
  }

  /** Takes a reservation back, as if it had never been: the call was not made. One that has ended stays as it is. */
  release(id: string): void {
    this.#host.tx(() => {
      const row = readOpenUsage(this.#host, id);
      if (row === undefined) return;
      deleteUsage(this.#host, row.seq);
      this.#add(row, {
        ...noUsage,
        calls: -1,
        unpriced: row.price === null ? -1 : 0,
        reservedTokens: -row.reservedTokens,
        reservedCost: -(row.reservedCost ?? 0),
      });
    });
  }

  /**
   * Ends a call. A second time, or for a call that is not there (any more), it does nothing. Charged is:
   *
   * - what was used, if `usage` says so, whatever the outcome;
   * - nothing, for an `error` with which the provider refused to begin: `refused` says so, and without it the class
   *   does (`context_overflow`, `rate_limit` and `fatal` are refusals; the others may have come in the middle);
   * - else all that was reserved, and the row is marked as estimated. So a `cut` call is charged in full, unless the
   *   caller knows how much it can have used at most and gives that as `usage`.
   *
   * The price is the one that was reserved with. Never calls the app.
   * @returns whether the call was open.
   */
  settle(id: string, result: CallResult): boolean {
    return this.#host.tx(() => {
      const row = readOpenUsage(this.#host, id);
      if (row === undefined) return false;
      this.#close(row, result);
      return true;
    });
  }

  /** At the start of a life: charges open calls of earlier ones in full, unless others will tell their end. @returns how many */
  closeOpen(keep: (call: Pick<UsageRow, "id" | "purpose">) => boolean = () => false): number {
    return this.#closeAll(openUsage(this.#host).filter((row) => !keep(row)));
  }

  /** Nobody will tell the end of these calls any more, whose ids begin with `prefix`: open ones count as cut. @returns how many. */
  closeCalls(prefix: string, is: (call: Pick<UsageRow, "id" | "turnId">) => boolean = () => true): number {
    return this.#closeAll(openUsageBelow(this.#host, prefix).filter(is));
  }

  /** A turn has ended: its open calls were cut, except those that go on without it. */
  closeTurn(turnSeq: number, goesOn: (call: Pick<UsageRow, "id" | "purpose">) => boolean = () => false): void {
    for (const row of openUsage(this.#host)) {
      if (row.turnSeq === turnSeq && !goesOn(row)) this.#close(row, { outcome: "cut", usage: undefined });
    }
  }

  /** The calls of one step, oldest first: the facts for what to try next. */
  attempts(turnSeq: number, step: number, purpose: CallPurpose = "turn"): LedgerEntry[] {
    return usageOfStep(this.#host, turnSeq, step, purpose).map(toEntry);
  }

  /** The calls of a turn that came to their end: its steps so far. */
  settledCalls(turnSeq: number): LedgerEntry[] {
    return settledUsageOfTurn(this.#host, turnSeq).map(toEntry);
  }

  /** All calls of a turn that have ended, however they did, for those who have them on their books too. */
  endedCalls(turnSeq: number): EndedCall[] {
    return endedUsageOfTurn(this.#host, turnSeq).map((row) => ({ id: row.id, result: resultOf(row) }));
  }

  /** Sums for a turn, a session, or all that the agent ever did. Costs the same however long that was. */
  totals(scope: TotalsScope): UsageTotals {
    const [kind, key] = scopeOf(scope);
    const sums = readUsageTotal(this.#host, kind, key);
    return { ...sums, cost: toDollars(sums.cost), reservedCost: toDollars(sums.reservedCost) };
  }

  /** Calls, newest first; `before` is the `seq` of the last one of the page before. */
  list(filter: UsageFilter & { readonly limit?: number | undefined } = {}): LedgerEntry[] {
    const limit = Math.max(0, Math.min(filter.limit ?? DEFAULT_PAGE, MAX_PAGE));
    return listUsage(this.#host, filter, limit).map(toEntry);
  }

  /**
   * A person agreed: raises the limits of a turn, a session or the agent by `amount`, on top of earlier grants, and answers a
   * soft limit's question for good; an empty amount does only that. @throws PerdureError `bad_input` for amounts below 0.
   */
  grant(scope: UsageScope, key: string, amount: { readonly tokens?: number; readonly cost?: number }): void {
    const { tokens: more = 0, cost = 0 } = amount;
    if (!(Number.isFinite(more) && more >= 0 && Number.isFinite(cost) && cost >= 0)) {
      throw new PerdureError("bad_input", "A grant must be a number of tokens or US dollars, 0 or more.");
    }
    addBudgetGrant(this.#host, scope, scope === "agent" ? "" : key, {
      tokens: Math.floor(more),
      cost: Math.floor(cost * NANO_DOLLARS),
    });
  }

  /** Erases the calls, sums and grants of a session and its turns. The agent's sums stay: deleting gives no new budget. */
  remove(session: string): void {
    this.#host.tx(() => {
      this.#closeAll(openUsage(this.#host).filter((row) => row.session === session));
      for (const turn of turnsWithUsage(this.#host, session)) this.#forget("turn", turn);
      this.#forget("session", session);
      deleteUsageOf(this.#host, session);
      deleteMessageFrames(this.#host, [session]);
      deleteLostFrames(this.#host);
    });
  }

  /** @param rows looked for before: an agent with nothing to close should write nothing. */
  #closeAll(rows: readonly UsageRow[]): number {
    if (rows.length === 0) return 0;
    return this.#host.tx(() => {
      for (const row of rows) this.#close(row, { outcome: "cut", usage: undefined });
      return rows.length;
    });
  }

  #close(row: UsageRow, result: CallResult): void {
    const end = chargeOf(row, result, this.#host.clock.now());
    settleUsage(this.#host, row.seq, end);
    this.#add(row, {
      calls: 0,
      unpriced: 0,
      tokens: end.tokens,
      input: end.input ?? 0,
      output: end.output ?? 0,
      reasoning: end.reasoning ?? 0,
      cacheRead: end.cacheRead ?? 0,
      cacheWrite: end.cacheWrite ?? 0,
      cost: end.cost ?? 0,
      reservedTokens: -row.reservedTokens,
      reservedCost: -(row.reservedCost ?? 0),
    });
    const { status: outcome, tokens: charged, cost, errorClass, settledAt } = end;
    this.#tell("call:settled", {
      ...{ ...factsOf(row), outcome, tokens: charged, usd: cost === null ? null : toDollars(cost) },
      durationMs: Math.max(0, settledAt - row.startedAt),
      ...(errorClass !== null && { errorClass }),
    });
  }

  /** Once it is stored. */
  #tell<T extends "call:reserved" | "call:settled">(type: T, payload: AgentEvents[T]): void {
    this.#host.afterTx((committed) => {
      if (committed) this.#host.emit(type, payload);
    });
  }

  #add({ turnId, session }: Pick<UsageRow, "turnId" | "session">, more: UsageSums): void {
    if (more.reservedTokens < 0) {
      this.#freed?.resolve();
      this.#freed = undefined;
    }
    if (turnId !== null) addUsageTotal(this.#host, "turn", turnId, more);
    addUsageTotal(this.#host, "session", session, more);
    addUsageTotal(this.#host, "agent", "", more);
  }

  #forget(scope: UsageScope, key: string): void {
    deleteUsageTotal(this.#host, scope, key);
    deleteBudgetGrant(this.#host, scope, key);
  }

  #states(budgets: Budgets, turn: string | undefined, session: string): CountedState[] {
    const states = [this.#state("session", session, budgets), this.#state("agent", "", budgets)];
    return turn === undefined ? states : [this.#state("turn", turn, budgets), ...states];
  }

  #state(scope: UsageScope, key: string, budgets: Budgets): CountedState {
    const budget = budgets[scope];
    if (budget === undefined) return { scope, budget, used: nothing, charged: nothing, grant: undefined };
    const sums = readUsageTotal(this.#host, scope, key);
    const grant = readBudgetGrant(this.#host, scope, key);
    return {
      scope,
      budget,
      used: { tokens: sums.tokens + sums.reservedTokens, cost: toDollars(sums.cost + sums.reservedCost) },
      charged: { tokens: sums.tokens, cost: toDollars(sums.cost) },
      grant: grant && { tokens: grant.tokens, cost: toDollars(grant.cost) },
    };
  }
}

function factsOf(
  call: Pick<UsageRow, "id" | "turnId" | "session" | "purpose" | "model" | "step" | "attempt">,
): CallFacts {
  const { id: callId, turnId, session, purpose, model, step, attempt } = call;
  return { callId, ...(turnId !== null && { requestId: turnId }), session, purpose, model, step, attempt };
}

interface CountedState extends BudgetState {
  /** Of `used`, what is charged: without calls under way. */
  readonly charged: Amount;
}

const nothing: Amount = { tokens: 0, cost: 0 };

function scopeOf(scope: TotalsScope): [UsageScope, string] {
  if (scope === "agent") return ["agent", ""];
  if (scope.turn !== undefined) return ["turn", scope.turn];
  return scope.session === undefined ? ["agent", ""] : ["session", scope.session];
}

/** A model call, as the agents above book it. */
export type PaidCall = Pick<NewCall, "id" | "step" | "attempt" | "model" | "modelIndex" | "estimate" | "price">;

/** The call may be made, as far as the agents above are concerned. */
export interface ReservedAbove {
  readonly ok: true;
  /** Whether a budget above counts on the estimate: then the answer must not be longer than it says. */
  readonly limited: boolean;
}

/** A budget of an agent above does not allow the call. Nothing is booked there. */
export interface OverBudgetAbove extends OverBudget {
  /** Whose budget it is, for a person to read. */
  readonly agent: string;
}

/** The agents that asked for a turn, up to the root; their ledgers count its calls too. What is asked twice counts once. */
export interface Payers {
  /** @throws what the call to them throws; PerdureError `bad_config` of a ledger above. Then nothing need be undone. */
  reserve(call: PaidCall, signal: AbortSignal): Promise<ReservedAbove | OverBudgetAbove>;
  /** Never throws: a call whose end they do not hear is charged in full, when the run ends at the latest. */
  settle(id: string, result: CallResult): Promise<void>;
  /** The call is not made. Never throws. */
  release(id: string): Promise<void>;
  /** Notes, in the transaction under way, that the turn ends because one of them has no room for it. */
  overBudget(): void;
}
