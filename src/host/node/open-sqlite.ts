import Database from "better-sqlite3";
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

/** Of new databases. A commit writes whole pages, and rows are small: small pages halve the files and what a turn writes. */
const PAGE_BYTES = 2048;

let empty: Buffer | undefined;

/** A database with the framework's tables and no rows, as bytes. Made once: it takes some milliseconds. */
function emptyBytes(): Buffer {
  if (empty !== undefined) return empty;
  const db = openSqlite(":memory:");
  db.pragma(`page_size = ${PAGE_BYTES}`);
  migrate(plainSql(db));
  // Tables that a later migration dropped leave pages that every agent would carry.
  db.exec("VACUUM");
  empty = db.serialize();
  db.close();
  return empty;
}

/** A database in memory with the framework's tables and no rows. */
export function openEmpty(): Database.Database {
  return openSqlite(emptyBytes());
}

/** The bytes of a new agent database: tables made, log mode set, nothing in it. */
export function templateBytes(): Uint8Array {
  const bytes = Uint8Array.from(emptyBytes());
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
