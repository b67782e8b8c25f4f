import { PerdureError } from "../base/error.ts";

/** Statements that would reach around transactions or out of the database. Durable Objects refuse the same. */
const REFUSED = /^(?:BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE|PRAGMA|ATTACH|DETACH|VACUUM)\b/i;
/** SQLite also skips empty statements. */
const LEADING_NOTHING = /^[\s;]+/;
const COMMENT_OR_QUOTED = /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:''|[^'])*'|"(?:""|[^"])*"|`(?:``|[^`])*`|\[[^\]]*\]/g;
/** Ends the transaction around a statement that fails, which is the host's. */
const UNDOES_ALL = /\b(?:OR|ON\s+CONFLICT)\s+ROLLBACK\b|\bRAISE\s*\(\s*ROLLBACK\b/i;
const TRIGGER = /^CREATE\s+(?:TEMP\s+|TEMPORARY\s+)?TRIGGER\b/i;

/** Refuses statements that no agent may run. Called once per distinct statement. @throws PerdureError `sql_refused` */
export function guardStatement(query: string): void {
  const bare = bareOf(query);
  const word = REFUSED.exec(bare)?.[0];
  if (word !== undefined) {
    throw new PerdureError(
      "sql_refused",
      `${word.toUpperCase()} is not allowed in an agent. Use this.transaction() for transactions; settings and other files belong to the host.`,
    );
  }
  if (UNDOES_ALL.test(bare)) {
    throw new PerdureError(
      "sql_refused",
      "ROLLBACK is not allowed as what a conflict leads to: it ends transactions behind the host's back. Use ABORT, the default, and this.transaction().",
    );
  }
  if (isSeveral(bare)) {
    throw new PerdureError("sql_refused", "One query holds one statement. Run the others by calls of their own.");
  }
}

/** Whether a statement that may run only reads. One that might write counts as a write. */
export function isReading(query: string): boolean {
  const bare = bareOf(query);
  return (
    /^(?:SELECT|VALUES|EXPLAIN)\b/i.test(bare) ||
    (/^WITH\b/i.test(bare) && !/\b(?:INSERT|UPDATE|DELETE|REPLACE)\b/i.test(bare))
  );
}

/** A query without comments and without what stands in quotes. */
function bareOf(query: string): string {
  const bare = query.replace(COMMENT_OR_QUOTED, (found) => (/^(?:--|\/\*)/.test(found) ? " " : "x"));
  return bare.replace(LEADING_NOTHING, "");
}

/** Some hosts would run all of them, others only the first. */
function isSeveral(bare: string): boolean {
  const statements = bare.split(";").filter((text) => text.trim() !== "");
  // The body of a trigger is statements, up to its END.
  if (TRIGGER.test(bare)) return !/^\s*END\s*$/i.test(statements.at(-1) ?? "");
  return statements.length > 1;
}
