import type { ChatErrorClassification, SettledUsage, UsageRow } from "../store/usage.ts";
import { costOf, NANO_DOLLARS, type Price } from "./prices.ts";
import { readUsage, type Usage } from "./token-usage.ts";

/** How a model call ended. */
export interface CallResult {
  /** `cut`: nobody saw its end. */
  readonly outcome: "ok" | "error" | "cut";
  /** What it used; `undefined` if nobody knows. */
  readonly usage: Usage | undefined;
  readonly error?: string | undefined;
  readonly errorClass?: ChatErrorClassification | undefined;
  readonly retryAfterMs?: number | undefined;
  /** Of an error: the provider refused before it did any work. */
  readonly refused?: boolean | undefined;
}

/** A call that has ended, for those who have it on their books too. */
export interface EndedCall {
  readonly id: string;
  readonly result: CallResult;
}

/** One call, as the ledger shows it. Costs are US dollars. */
export interface LedgerEntry extends Omit<UsageRow, "price" | "estimated"> {
  /** The model has no known price: `cost` is null. */
  readonly unpriced: boolean;
  /** Charged at the reservation, because nobody said what was used. */
  readonly estimated: boolean;
}

/** A stored error is for a person to read, not a place for whole responses. */
const MAX_ERROR_LENGTH = 1000;

/** Dollars, from whole billionths. */
export function toDollars(nano: number): number {
  return nano / NANO_DOLLARS;
}

/** What is to be stored of the end of a call. `Ledger.settle` says the rules. */
export function chargeOf(row: UsageRow, result: CallResult, now: number): SettledUsage {
  const retryAfter = result.retryAfterMs;
  const facts = {
    status: result.outcome,
    error: result.error?.slice(0, MAX_ERROR_LENGTH) ?? null,
    errorClass: result.errorClass ?? (result.outcome === "error" ? "unknown" : null),
    retryAfterMs: retryAfter !== undefined && Number.isFinite(retryAfter) ? Math.max(0, Math.ceil(retryAfter)) : null,
    settledAt: now,
  } as const;
  const usage = counted(result.usage);
  if (usage !== undefined) {
    const cost = row.price === null ? null : costOf(JSON.parse(row.price) as Price, usage);
    return { ...facts, ...usage, tokens: usage.input + usage.output, cost, estimated: 0 };
  }
  const unknown = { input: null, output: null, reasoning: null, cacheRead: null, cacheWrite: null };
  if (result.outcome === "error" && refused(result)) {
    return { ...facts, ...unknown, tokens: 0, cost: row.price === null ? null : 0, estimated: 0 };
  }
  return { ...facts, ...unknown, tokens: row.reservedTokens, cost: row.reservedCost, estimated: 1 };
}

/** A row as the ledger shows it. */
export function toEntry({ price, ...row }: UsageRow): LedgerEntry {
  return {
    ...row,
    reservedCost: row.reservedCost === null ? null : toDollars(row.reservedCost),
    cost: row.cost === null ? null : toDollars(row.cost),
    unpriced: price === null,
    estimated: row.estimated === 1,
  };
}

/** What {@link chargeOf} made this row from, as far as it matters: it makes the same charge from it again. */
export function resultOf(row: UsageRow): CallResult {
  const { status, input, output, error, errorClass, estimated } = row;
  const { reasoning, cacheRead, cacheWrite } = row;
  const isKnown = input !== null && output !== null;
  return {
    outcome: status === "open" ? "cut" : status,
    usage: isKnown
      ? { input, output, reasoning: reasoning ?? 0, cacheRead: cacheRead ?? 0, cacheWrite: cacheWrite ?? 0 }
      : undefined,
    ...(status === "error" && { refused: estimated === 0 && !isKnown }),
    ...(error !== null && { error }),
    ...(errorClass !== null && { errorClass }),
  };
}

function refused({ refused: said, errorClass }: CallResult): boolean {
  return said ?? (errorClass === "context_overflow" || errorClass === "rate_limit" || errorClass === "fatal");
}

/** Numbers may be anything; what cannot be counted is not known. Zeros of a caller are meant. */
function counted(usage: Usage | undefined): Usage | undefined {
  if (usage === undefined) return undefined;
  if (usage.input === 0 && usage.output === 0) return nothing;
  return readUsage({
    inputTokens: usage.input,
    outputTokens: usage.output,
    inputTokenDetails: { cacheReadTokens: usage.cacheRead, cacheWriteTokens: usage.cacheWrite },
    outputTokenDetails: { reasoningTokens: usage.reasoning },
  });
}

const nothing: Usage = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
