import { PerdureError } from "../base/error.ts";

/** Statements that would reach around transactions or out of the database. Durable Objects refuse the same. */
const REFUSED = /^(?:BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE|PRAGMA|ATTACH|DETACH|VACUUM)\b/i;
/** SQLite also skips empty statements. */
const LEADING_NOTHING = /^(?:[\s;]+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)+/;

/** Refuses statements that no agent may run. Called once per distinct statement. @throws PerdureError `sql_refused` */
export function guardStatement(query: string): void {
  const word = REFUSED.exec(query.replace(LEADING_NOTHING, ""))?.[0];
  if (word === undefined) return;
  throw new PerdureError(
    "sql_refused",
    `${word.toUpperCase()} is not allowed in an agent. Use this.transaction() for transactions; settings and other files belong to the host.`,
  );
}
