import Database from "better-sqlite3";
import {
  dropUnusedTables,
  migrateLate,
  readLateTables,
  type SchemaTables,
  tablesWithoutRows,
} from "../../store/late-tables.ts";
import { migrate } from "../../store/migrations.ts";
import type { Sql, SqlRow, SqlValue } from "../../port.ts";

/** Opens a database of this host. Temporary data stays in memory: rows belong nowhere else, and a folder may be missing. */
export function openSqlite(source: string | Buffer, options?: Database.Options): Database.Database {
  const db = new Database(source, options);
  try {
    db.pragma("temp_store = MEMORY");
    return db;
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

/** Offsets in the file header that tell SQLite to use a write-ahead log, and the value for it. */
const HEADER_WRITE_VERSION = 18;
const HEADER_READ_VERSION = 19;
const WAL_VERSION = 2;

/** Of new databases. A commit writes whole pages, and rows are small: see docs/storage.md for what other sizes cost. */
export const PAGE_BYTES = 1024;

let made: { readonly empty: Buffer; readonly late: SchemaTables; readonly rowless: readonly string[] } | undefined;

/** A database with the framework's tables and no rows, as bytes, and how the late ones are made. Once: it takes some milliseconds. */
function makeEmpty() {
  if (made !== undefined) return made;
  const db = openSqlite(":memory:");
  db.pragma(`page_size = ${PAGE_BYTES}`);
  const sql = plainSql(db);
  migrate(sql);
  const late = readLateTables(sql);
  dropUnusedTables(sql);
  // What was dropped leaves pages that every agent would carry.
  db.exec("VACUUM");
  const rowless = tablesWithoutRows(sql);
  made = { empty: db.serialize(), late, rowless };
  db.close();
  return made;
}

/** How the tables are made that agents have from their first row on. */
export function lateTables(): SchemaTables {
  return makeEmpty().late;
}

/** The tables of a new database that have no rows: all but the one of the schema's steps. */
export function rowlessTables(): readonly string[] {
  return makeEmpty().rowless;
}

/** Brings a database of an agent to the newest schema. @throws PerdureError `database_newer` */
export function migrateAgent(db: Database.Database): void {
  migrateLate(plainSql(db), (steps) => {
    const scratch = openSqlite(":memory:");
    try {
      migrate(plainSql(scratch), steps);
      return readLateTables(plainSql(scratch));
    } finally {
      scratch.close();
    }
  });
}

/** A database in memory with the framework's tables and no rows. */
export function openEmpty(): Database.Database {
  return openSqlite(makeEmpty().empty);
}

/** The bytes of a new agent database: tables made, log mode set, nothing in it. */
export function templateBytes(): Uint8Array {
  const bytes = Uint8Array.from(makeEmpty().empty);
  bytes[HEADER_WRITE_VERSION] = WAL_VERSION;
  bytes[HEADER_READ_VERSION] = WAL_VERSION;
  return bytes;
}

/** SQL straight on a database, for migrations; outside any gate. */
export function plainSql(db: Database.Database): Sql {
  return {
    sql<T = SqlRow>(query: string, ...args: SqlValue[]): T[] {
      const statement = db.prepare<SqlValue[]>(query);
      return statement.reader ? (statement.all(...args) as T[]) : (statement.run(...args), []);
    },
    tx: (work) => db.transaction(work)(),
  };
}
