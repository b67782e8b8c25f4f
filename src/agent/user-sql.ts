import { PerdureError } from "../base/error.ts";
import type { Sql, SqlRow, SqlValue } from "../port.ts";
import { RESERVED_PREFIX } from "../store/migrations.ts";

/** What may stand in a `this.sql` template. Booleans are stored as 0 and 1. */
export type SqlParameter = SqlValue | boolean;

/** Call sites that were looked at; a template's strings are the same object every time. */
const checked = new WeakSet<TemplateStringsArray>();

/**
 * The app's SQL on its own tables in the agent's database. @throws PerdureError `sql_refused` for statements and names of the
 * framework, `bad_input` for values that SQLite cannot store, `sql_failed` when SQLite refuses.
 */
export function userSql<T = SqlRow>(db: Sql, strings: TemplateStringsArray, values: readonly SqlParameter[]): T[] {
  const query = strings.join("?");
  if (!checked.has(strings)) {
    if (query.toLowerCase().includes(RESERVED_PREFIX)) {
      throw new PerdureError(
        "sql_refused",
        `Names that start with "${RESERVED_PREFIX}" belong to the framework. Give your tables other names, and pass texts as \${values}.`,
      );
    }
    checked.add(strings);
  }
  return db.sql<T>(query, ...values.map(toSqlValue));
}

function toSqlValue(value: SqlParameter): SqlValue {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value === null || typeof value === "string" || typeof value === "number" || value instanceof Uint8Array)
    return value;
  throw new PerdureError(
    "bad_input",
    `SQLite cannot store a value of type ${typeof value}. Use text, a number, null or bytes; store objects with JSON.stringify().`,
  );
}
