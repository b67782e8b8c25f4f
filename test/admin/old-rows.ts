import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { migrate, migrations } from "../../src/store/migrations.ts";
import { withDatabase } from "../host/agent-files.ts";
import { tempDir } from "../host/open-host.ts";
import { plainSql } from "../support/plain-sql.ts";

/** The last schema in which each file had all tables. */
export const ALL_TABLES = 21;

/** Writes what is in a file as a version of before would have. */
export function makeOld(file: string): void {
  const made = join(tempDir(), "old.db");
  migrate(
    plainSql(made),
    migrations.filter(({ id }) => id <= ALL_TABLES),
  );
  withDatabase(made, (db) => {
    db.prepare("ATTACH ? AS now").run(file);
    const columnsOf = (schema: string, table: string) =>
      db.prepare("SELECT name FROM pragma_table_info(?, ?)").pluck().all(table, schema) as string[];
    const names = "SELECT name FROM now.sqlite_schema WHERE type = 'table' AND name LIKE 'perdure_%'";
    for (const table of db.prepare(names).pluck().all() as string[]) {
      if (table === "perdure_migration") continue;
      const known = columnsOf("main", table);
      const shared = columnsOf("now", table).filter((name) => known.includes(name));
      if (shared.length === 0) continue;
      db.exec(`INSERT OR REPLACE INTO main.${table} (${shared.join()}) SELECT ${shared.join()} FROM now.${table}`);
    }
    db.exec("DETACH now");
  });
  copyFileSync(made, file);
}
