import type { Sql } from "../port.ts";
import type { SentFacts } from "./frame.ts";
import { behindPrefix, tableOf } from "./table.ts";

/**
 * `perdure_usage`: one row per attempt to call a model, written before the call and settled once after it. Costs are whole
 * billionths of a US dollar, so that sums are exact; NULL without a known price. Token columns are NULL where the provider did
 * not say; `tokens` and `cost` are what is charged all the same.
 */
export const usageSchema: readonly string[] = [
  `CREATE TABLE perdure_usage (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL,
    turn_id TEXT,
    turn_seq INTEGER,
    step INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    model TEXT NOT NULL,
    model_index INTEGER NOT NULL,
    status TEXT NOT NULL,
    reserved_tokens INTEGER NOT NULL,
    reserved_cost INTEGER,
    price TEXT,
    tokens INTEGER NOT NULL DEFAULT 0,
    input INTEGER,
    output INTEGER,
    reasoning INTEGER,
    cache_read INTEGER,
    cache_write INTEGER,
    cost INTEGER,
    estimated INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    error_class TEXT,
    retry_after_ms INTEGER,
    request_digest TEXT,
    started_at INTEGER NOT NULL,
    settled_at INTEGER
  ) STRICT`,
  "CREATE INDEX perdure_usage_open ON perdure_usage (seq) WHERE status = 'open'",
  "CREATE INDEX perdure_usage_step ON perdure_usage (turn_seq, step) WHERE turn_seq IS NOT NULL",
  "CREATE INDEX perdure_usage_turn ON perdure_usage (turn_id) WHERE turn_id IS NOT NULL",
  "CREATE INDEX perdure_usage_session ON perdure_usage (session)",
];

/** What a failed model call means: the request does not fit, wait, maybe try again, never works with this model, or unknown. */
export type ChatErrorClassification = "context_overflow" | "rate_limit" | "transient" | "fatal" | "unknown";
/** What a model was called for. `agent-tool`: by an agent below, for a run that this one asked for. */
export type CallPurpose = "turn" | "compaction" | "title" | "agent-tool" | "tool";
/** `open` is under way, `cut` ended without anybody seeing how (the process died, or it was stopped). */
type CallStatus = "open" | "ok" | "error" | "cut";

/** One call. Times are milliseconds since the epoch, costs billionths of a US dollar. */
export interface UsageRow {
  readonly seq: number;
  readonly id: string;
  readonly session: string;
  readonly turnId: string | null;
  readonly turnSeq: number | null;
  readonly step: number;
  readonly attempt: number;
  readonly purpose: CallPurpose;
  /** `provider/modelId` */
  readonly model: string;
  readonly modelIndex: number;
  readonly status: CallStatus;
  readonly reservedTokens: number;
  readonly reservedCost: number | null;
  /** The price at the time of the reservation, as JSON; NULL: unknown. */
  readonly price: string | null;
  /** Charged tokens; 0 while open. */
  readonly tokens: number;
  readonly input: number | null;
  readonly output: number | null;
  readonly reasoning: number | null;
  readonly cacheRead: number | null;
  readonly cacheWrite: number | null;
  readonly cost: number | null;
  /** Charged at the reservation, because nobody said what was used. */
  readonly estimated: 0 | 1;
  readonly error: string | null;
  readonly errorClass: ChatErrorClassification | null;
  readonly retryAfterMs: number | null;
  readonly requestDigest: string | null;
  readonly startedAt: number;
  readonly settledAt: number | null;
}

/** What is known of a call after it. */
export type SettledUsage = Pick<
  UsageRow,
  | "tokens"
  | "input"
  | "output"
  | "reasoning"
  | "cacheRead"
  | "cacheWrite"
  | "cost"
  | "estimated"
  | "error"
  | "errorClass"
  | "retryAfterMs"
> & { readonly status: "ok" | "error" | "cut"; readonly settledAt: number };

/** Which calls to list. */
export interface UsageFilter {
  readonly turn?: string | undefined;
  readonly session?: string | undefined;
  readonly purpose?: CallPurpose | undefined;
  /** Only those with a smaller `seq`. */
  readonly before?: number | undefined;
}

/** What is known of a call before it is made. */
type NewUsage = Omit<UsageRow, "seq" | keyof SettledUsage>;

const usage = tableOf<UsageRow>()(
  "perdure_usage",
  "seq id session turnId turnSeq step attempt purpose model modelIndex status reservedTokens reservedCost price tokens",
  "input output reasoning cacheRead cacheWrite cost estimated error errorClass retryAfterMs requestDigest startedAt",
  "settledAt",
);

/** @returns its number @throws PerdureError `sql_failed` when the id is taken. */
export function insertUsage(db: Sql, call: NewUsage & Partial<SentFacts>): number {
  const [row] = usage.insert<{ seq: number }>(db, { ...call, status: "open" }, "RETURNING seq");
  return row?.seq ?? 0;
}

/** The call, if it is still under way. */
export function readOpenUsage(db: Sql, id: string): UsageRow | undefined {
  return usage.one(db, "id = ? AND status = 'open'", id);
}

/** Whether a call of this id was ever booked, and is not forgotten. */
export function hasUsage(db: Sql, id: string): boolean {
  return usage.has(db, "id = ?", id);
}

/** Calls that are under way, oldest first. */
export function openUsage(db: Sql): UsageRow[] {
  return usage.select(db, "WHERE status = 'open' ORDER BY seq");
}

/** Calls that are under way and whose ids begin with `prefix`. Costs the same however many others are. */
export function openUsageBelow(db: Sql, prefix: string): UsageRow[] {
  return usage.select(db, "WHERE id >= ? AND id < ? AND status = 'open' ORDER BY id", prefix, behindPrefix(prefix));
}

/** The calls of a turn that came to their end, one per step, in order. */
export function settledUsageOfTurn(db: Sql, turnSeq: number): UsageRow[] {
  return usage.select(db, "WHERE turn_seq = ? AND purpose = 'turn' AND status = 'ok' ORDER BY step, seq", turnSeq);
}

/** The calls of a turn that have ended, oldest first. */
export function endedUsageOfTurn(db: Sql, turnSeq: number): UsageRow[] {
  return usage.select(db, "WHERE turn_seq = ? AND status <> 'open' ORDER BY seq", turnSeq);
}

/** Ends a call that is under way. */
export function settleUsage(db: Sql, seq: number, end: SettledUsage): void {
  usage.update(db, end, "seq = ? AND status = 'open'", seq);
}

/** Takes back a call that is under way. */
export function deleteUsage(db: Sql, seq: number): void {
  usage.delete(db, "seq = ? AND status = 'open'", seq);
}

/** The calls of one step for one purpose, oldest first. */
export function usageOfStep(db: Sql, turnSeq: number, step: number, purpose: CallPurpose): UsageRow[] {
  return usage.select(db, "WHERE turn_seq = ? AND step = ? AND purpose = ? ORDER BY seq", turnSeq, step, purpose);
}

/** Newest first. */
export function listUsage(db: Sql, filter: UsageFilter, limit: number): UsageRow[] {
  const { before = Number.MAX_SAFE_INTEGER, turn, session, purpose } = filter;
  const where = [
    ["seq < ?", before],
    ["turn_id = ?", turn],
    ["session = ?", session],
    ["purpose = ?", purpose],
  ] as const;
  return usage.list(db, where, "seq DESC", limit);
}

/** What stored calls can be added up by. */
export type UsageGroup = "model" | "purpose" | "day";

/** One group of calls. */
interface UsageGroupSums {
  readonly key: string;
  readonly calls: number;
  /** Calls that were charged without a known price. */
  readonly unpriced: number;
  readonly tokens: number;
  /** Billionths of a US dollar. */
  readonly cost: number;
}

const GROUPS: Readonly<Record<UsageGroup, string>> = {
  model: "model",
  purpose: "purpose",
  day: "strftime('%Y-%m-%d', started_at / 1000, 'unixepoch')",
};

/** Sums of stored calls that this agent made itself: what runs of agents below used is in their own rows. */
export function groupUsage(db: Sql, by: UsageGroup): UsageGroupSums[] {
  return db.sql<UsageGroupSums>(
    `SELECT ${GROUPS[by]} AS key, count(*) AS calls, total(cost IS NULL AND tokens > 0) AS unpriced,
       coalesce(sum(tokens), 0) AS tokens, coalesce(sum(cost), 0) AS cost
     FROM perdure_usage WHERE purpose <> 'agent-tool' AND status <> 'open' GROUP BY 1 ORDER BY 1`,
  );
}

/** Ids of the turns that called a model in a session. */
export function turnsWithUsage(db: Sql, session: string): string[] {
  const rows = db.sql<{ id: string }>(
    "SELECT DISTINCT turn_id AS id FROM perdure_usage WHERE session = ? AND turn_id IS NOT NULL",
    session,
  );
  return rows.map(({ id }) => id);
}

export function deleteUsageOf(db: Sql, session: string): void {
  usage.delete(db, "session = ?", session);
}
