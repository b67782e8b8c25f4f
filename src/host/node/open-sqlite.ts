import Database from "better-sqlite3";

/**
 * Opens a database, as every one of this host is opened. What SQLite needs for a moment (large sorts, journals of single
 * statements, the copy that it rewrites a file from) is kept in memory: there may be no folder for temporary files that can
 * be written to, and what is in an agent's rows belongs nowhere else.
 */
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
