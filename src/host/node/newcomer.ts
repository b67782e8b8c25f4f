import fs from "node:fs";
import type Database from "better-sqlite3";
import { errorText, PerdureError } from "../../base/error.ts";
import { backgroundClock } from "../../base/time.ts";
import { eraseAgain } from "../../erase/erase.ts";
import type { EraseHost } from "../../erase/erase-plan.ts";
import { noteAgentId } from "../../store/agent-id.ts";
import { schemaVersion } from "../../store/migrations.ts";
import { parseAgentId } from "../../wire/agent-path.ts";
import { AgentDatabase, type DatabaseEvents } from "./database.ts";
import { diskBlobs } from "./disk-blobs.ts";
import { type AgentFile, HandlePool } from "./handle-pool.ts";
import { migrateAgent, openEmpty, openSqlite, plainSql } from "./open-sqlite.ts";

/** Rows that are about to become an agent's. */
interface Rows {
  readonly id: string;
  readonly file: string;
  readonly blobDir: string;
  /** What was erased since they were copied. */
  readonly again: readonly string[];
}

/**
 * Makes rows fit to be an agent's: checks them, brings them up to date, and erases from them what was erased since. Rejects with
 * `database_corrupt`, `database_newer`; then they are not to be used.
 */
export async function prepareNewcomer({ id, file, blobDir, again }: Rows): Promise<void> {
  const pool = new HandlePool(1, openEmpty());
  const rows: AgentFile = {
    exists: () => true,
    open() {
      const db = openChecked(file, id);
      migrateAgent(db);
      noteAgentId(plainSql(db), id);
      return { db };
    },
    sync: () => Promise.resolve(),
    closed: () => undefined,
  };
  try {
    const store = new AgentDatabase(id, rows, pool, diskBlobs(blobDir), nobodyElse);
    // Opens and so checks it, whether or not there is something to erase.
    store.tx(() => undefined);
    for (const scope of again) await eraseAgain(eraseHostOf(store, id), scope);
  } finally {
    pool.closeAll();
  }
  const synced = await fs.promises.open(file, "r+");
  await synced.datasync().finally(() => synced.close());
}

/** Nobody hears of what is written to rows that are not an agent's yet. */
const nobodyElse: DatabaseEvents = {
  refusal: () => undefined,
  mark: () => 0,
  rolledBack: () => undefined,
  committed: () => undefined,
  firstWrite: () => undefined,
  sync: (rows) => rows(),
};

function openChecked(file: string, id: string): Database.Database {
  let db: Database.Database | undefined;
  try {
    db = openSqlite(file, { fileMustExist: true });
    db.pragma("locking_mode = EXCLUSIVE");
    const [flaw] = schemaVersion(plainSql(db)) === 0 ? ["they are of no agent"] : checkRows(db);
    if (flaw === undefined) {
      db.pragma("journal_mode = WAL");
      return db;
    }
    throw new Error(flaw);
  } catch (thrown) {
    db?.close();
    throw new PerdureError("database_corrupt", `The rows of ${id} cannot be taken in: ${errorText(thrown)}.`);
  }
}

/** The schema of rows in a file that nobody else uses. */
export function schemaOf(file: string): number {
  const db = openSqlite(file, { fileMustExist: true });
  try {
    db.pragma("locking_mode = EXCLUSIVE");
    return schemaVersion(plainSql(db));
  } finally {
    db.close();
  }
}

/** What SQLite finds to be wrong with a database, in words; nothing: it is whole. Reads all of it. */
export function checkRows(db: Database.Database): string[] {
  const found = db.prepare("PRAGMA quick_check").pluck().all() as string[];
  return found.filter((line) => line !== "ok");
}

/** What erasing asks for, of rows that nobody else uses. Children are left: each has an entry of its own in the list. */
function eraseHostOf(store: AgentDatabase, id: string): EraseHost {
  return {
    sql: (query, ...args) => store.sql(query, ...args),
    tx: (work, level) => store.tx(work, level),
    ...{ blank: false, path: parseAgentId(id), clock: backgroundClock, blobs: store.blobs },
    breathe: () => new Promise((resolve) => setImmediate(resolve)),
    durable: () => Promise.resolve(),
    remove: () => Promise.resolve(),
    scrub: () => Promise.resolve(store.scrub()),
  };
}
