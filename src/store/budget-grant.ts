import type { Sql } from "../port.ts";
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

export function readBudgetGrant(db: Sql, scope: UsageScope, key: string): BudgetGrantRow | undefined {
  return db.sql<BudgetGrantRow>(
    "SELECT tokens, cost FROM perdure_budget_grant WHERE scope = ? AND key = ?",
    scope,
    key,
  )[0];
}

export function addBudgetGrant(db: Sql, scope: UsageScope, key: string, more: BudgetGrantRow): void {
  db.sql(
    `INSERT INTO perdure_budget_grant (scope, key, tokens, cost) VALUES (?, ?, ?, ?)
     ON CONFLICT (scope, key) DO UPDATE SET tokens = tokens + excluded.tokens, cost = cost + excluded.cost`,
    scope,
    key,
    more.tokens,
    more.cost,
  );
}

export function deleteBudgetGrant(db: Sql, scope: UsageScope, key: string): void {
  db.sql("DELETE FROM perdure_budget_grant WHERE scope = ? AND key = ?", scope, key);
}
