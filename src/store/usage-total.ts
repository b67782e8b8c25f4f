import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";

/** `perdure_usage_total`: sums of `perdure_usage` by turn, session and agent (key `''`), changed in its transactions. */
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

const sums = tableOf<UsageSums>()(
  "perdure_usage_total",
  "calls unpriced tokens input output reasoning cacheRead cacheWrite cost reservedTokens reservedCost",
);

/** Nothing at all. */
export const noUsage = Object.fromEntries(sums.names.map((name) => [name, 0])) as unknown as UsageSums;

export function readUsageTotal(db: Sql, scope: UsageScope, key: string): UsageSums {
  return sums.one(db, "scope = ? AND key = ?", scope, key) ?? noUsage;
}

const columns = sums.names.map((name) => sums.column(name));
const ADDED = columns.map((column) => `${column} = ${column} + excluded.${column}`).join(", ");

export function addUsageTotal(db: Sql, scope: UsageScope, key: string, more: UsageSums): void {
  sums.insert(db, { ...{ scope, key }, ...more }, `ON CONFLICT (scope, key) DO UPDATE SET ${ADDED}`);
}

export function deleteUsageTotal(db: Sql, scope: UsageScope, key: string): void {
  sums.delete(db, "scope = ? AND key = ?", scope, key);
}
