// A database of the app's own, as somebody has it who uses sessions without an agent.
import Database from "better-sqlite3";
import type { Sql, SqlValue } from "perdure/host";
import { onTestFinished } from "vitest";

export function plainSql(file = ":memory:"): Sql {
  const db = new Database(file);
  onTestFinished(() => void db.close());
  let depth = 0;
  return {
    sql<T>(query: string, ...args: SqlValue[]): T[] {
      const statement = db.prepare(query);
      if (statement.reader) return statement.all(...args) as T[];
      statement.run(...args);
      return [];
    },
    tx<T>(work: () => T): T {
      const name = `t${depth++}`;
      db.exec(`SAVEPOINT ${name}`);
      try {
        const result = work();
        db.exec(`RELEASE ${name}`);
        return result;
      } catch (thrown) {
        db.exec(`ROLLBACK TO ${name}; RELEASE ${name}`);
        throw thrown;
      } finally {
        depth--;
      }
    },
  };
}
