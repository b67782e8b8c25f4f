import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";

/** Every file below `dir`, relative to it, sorted. The host's own and its spare ones are left out. */
export function agentFiles(dir: string): string[] {
  const below = (name: string) =>
    existsSync(join(dir, name))
      ? readdirSync(join(dir, name), { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) => join(entry.parentPath, entry.name))
      : [];
  return [...below("agents"), ...below("blobs")].sort();
}

/** The database file of the one agent whose name is `name`. */
export function databaseFile(dir: string, name: string): string {
  const found = agentFiles(dir).filter((file) => file.endsWith(".db") && file.includes(`/${name}.`));
  if (found.length !== 1 || found[0] === undefined) throw new Error(`${found.length} files for ${name}`);
  return found[0];
}

export function hashOf(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}

/** Works on a database whose host is stopped. While it runs, opening the file here would drop SQLite's locks. */
export function withDatabase<T>(file: string, work: (db: Database.Database) => T): T {
  const db = new Database(file);
  try {
    return work(db);
  } finally {
    db.close();
  }
}
