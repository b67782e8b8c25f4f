import type { Sql, SqlRow, SqlValue } from "../../port.ts";
import { readAllTables, readLateTables, type SchemaTables } from "../../store/late-tables.ts";
import { migrate, type Migration, RESERVED_PREFIX } from "../../store/migrations.ts";
import type { ObjectStorage } from "./platform.ts";

/** An object has one database: what is only tried out has other names there, and is undone. */
const SCRATCH_PREFIX = "scratch_of_perdure_";

let all: SchemaTables | undefined;

/** What the newest schema is made of. Found out once: it takes some milliseconds. */
export function newestTables(storage: ObjectStorage): SchemaTables {
  return (all ??= undone(storage, (db) => {
    migrate(db);
    return readAllTables(db);
  }));
}

/** What late tables are made of in a database that has had these steps. */
export function lateTablesAfter(storage: ObjectStorage, steps: readonly Migration[]): SchemaTables {
  return undone(storage, (db) => {
    migrate(db, steps);
    return readLateTables(db);
  });
}

/** SQL straight on an object's database, outside any gate. */
export function plainSql(storage: ObjectStorage): Sql {
  return {
    sql: <T = SqlRow>(query: string, ...args: SqlValue[]) => storage.sql.exec(query, ...args).toArray() as T[],
    tx: (work) => storage.transactionSync(work),
  };
}

function undone<T>(storage: ObjectStorage, work: (db: Sql) => T): T {
  let found: { readonly result: T } | undefined;
  const enough = new Error("undo");
  try {
    storage.transactionSync(() => {
      found = { result: work(scratchSql(storage)) };
      throw enough;
    });
  } catch (thrown) {
    if (thrown !== enough || found === undefined) throw thrown;
    return found.result;
  }
  throw enough;
}

/** The framework's tables under other names, whatever stands in the database. */
function scratchSql(storage: ObjectStorage): Sql {
  const hide = (text: string) => text.replaceAll(RESERVED_PREFIX, SCRATCH_PREFIX);
  const seek = (value: SqlValue) =>
    typeof value === "string" ? value.replaceAll(SCRATCH_PREFIX, RESERVED_PREFIX) : value;
  const db = plainSql(storage);
  return {
    tx: (work) => db.tx(work),
    sql<T = SqlRow>(query: string, ...args: SqlValue[]): T[] {
      const given = args.map((arg) => (typeof arg === "string" ? hide(arg) : arg));
      const rows = db.sql(hide(query), ...given);
      return rows.map((row) =>
        Object.fromEntries(Object.entries(row).map(([name, value]) => [name, seek(value)])),
      ) as T[];
    },
  };
}
