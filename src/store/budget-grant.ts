import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";
import type { UsageScope } from "./usage-total.ts";

/** `perdure_budget_grant`: what people allowed beyond a budget. Costs are billionths of a US dollar. */
export const budgetGrantSchema: readonly string[] = [
  `CREATE TABLE perdure_budget_grant (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
  ) STRICT, WITHOUT ROWID`,
];

/** The sum of all grants for one turn, session or agent. */
interface BudgetGrantRow {
  readonly tokens: number;
  readonly cost: number;
}

const grants = tableOf<BudgetGrantRow>()("perdure_budget_grant", "tokens cost");

export function readBudgetGrant(db: Sql, scope: UsageScope, key: string): BudgetGrantRow | undefined {
  return grants.one(db, "scope = ? AND key = ?", scope, key);
}

export function addBudgetGrant(db: Sql, scope: UsageScope, key: string, more: BudgetGrantRow): void {
  const add = "tokens = tokens + excluded.tokens, cost = cost + excluded.cost";
  grants.insert(db, { ...{ scope, key }, ...more }, `ON CONFLICT (scope, key) DO UPDATE SET ${add}`);
}

export function deleteBudgetGrant(db: Sql, scope: UsageScope, key: string): void {
  grants.delete(db, "scope = ? AND key = ?", scope, key);
}
