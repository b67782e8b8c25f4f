import type { Sql } from "../port.ts";

/**
 * `perdure_usage_total`: the sums of `perdure_usage`, by turn, by session and for the whole agent (key `''`), so
 * that nobody has to add up a history. Changed in the transaction that changes the rows.
 */
export const usageTotalSchema: readonly string[] = [
  `CREATE TABLE perdure_usage_total (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    calls INTEGER NOT NULL DEFAULT 0,
    unpriced INTEGER NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL DEFAULT 0,
    input INTEGER NOT NULL DEFAULT 0,
    output INTEGER NOT NULL DEFAULT 0,
    reasoning INTEGER NOT NULL DEFAULT 0,
    cache_read INTEGER NOT NULL DEFAULT 0,
    cache_write INTEGER NOT NULL DEFAULT 0,
    cost INTEGER NOT NULL DEFAULT 0,
    reserved_tokens INTEGER NOT NULL DEFAULT 0,
    reserved_cost INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, key)
  ) STRICT, WITHOUT ROWID`,
];

/** What calls are added up by. */
export type UsageScope = "turn" | "session" | "agent";

/** Sums, or what to add to them. Costs are billionths of a US dollar. */
export interface UsageSums {
  readonly calls: number;
  readonly unpriced: number;
  readonly tokens: number;
  readonly input: number;
  readonly output: number;
  readonly reasoning: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly cost: number;
  readonly reservedTokens: number;
  readonly reservedCost: number;
}

/** Nothing at all. */
export const noUsage: UsageSums = {
  calls: 0,
  unpriced: 0,
  tokens: 0,
  input: 0,
  output: 0,
  reasoning: 0,
  cacheRead: 0,
  cacheWrite: 0,
  cost: 0,
  reservedTokens: 0,
  reservedCost: 0,
};

export function readUsageTotal(db: Sql, scope: UsageScope, key: string): UsageSums {
  const [row] = db.sql<UsageSums>(
    `SELECT calls, unpriced, tokens, input, output, reasoning, cache_read AS cacheRead, cache_write AS cacheWrite, cost,
       reserved_tokens AS reservedTokens, reserved_cost AS reservedCost
     FROM perdure_usage_total WHERE scope = ? AND key = ?`,
    scope,
    key,
  );
  return row ?? noUsage;
}

export function addUsageTotal(db: Sql, scope: UsageScope, key: string, more: UsageSums): void {
  db.sql(
    `INSERT INTO perdure_usage_total (scope, key, calls, unpriced, tokens, input, output, reasoning, cache_read,
       cache_write, cost, reserved_tokens, reserved_cost)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (scope, key) DO UPDATE SET calls = calls + excluded.calls, unpriced = unpriced + excluded.unpriced,
       tokens = tokens + excluded.tokens, input = input + excluded.input, output = output + excluded.output,
       reasoning = reasoning + excluded.reasoning, cache_read = cache_read + excluded.cache_read,
       cache_write = cache_write + excluded.cache_write, cost = cost + excluded.cost,
       reserved_tokens = reserved_tokens + excluded.reserved_tokens,
       reserved_cost = reserved_cost + excluded.reserved_cost`,
    scope,
    key,
    more.calls,
    more.unpriced,
    more.tokens,
    more.input,
    more.output,
    more.reasoning,
    more.cacheRead,
    more.cacheWrite,
    more.cost,
    more.reservedTokens,
    more.reservedCost,
  );
}

export function deleteUsageTotal(db: Sql, scope: UsageScope, key: string): void {
  db.sql("DELETE FROM perdure_usage_total WHERE scope = ? AND key = ?", scope, key);
}
