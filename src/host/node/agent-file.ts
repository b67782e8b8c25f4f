import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import type Database from "better-sqlite3";
import { PerdureError } from "../../base/error.ts";
import { noteAgentId } from "../../store/agent-id.ts";
import { CELL_TABLE } from "../../store/cell.ts";
import { parseAgentId } from "../../wire/agent-path.ts";
import type { AgentFile, OpenedFile } from "./handle-pool.ts";
import { migrateAgent, openSqlite, PAGE_BYTES, plainSql } from "./open-sqlite.ts";
import type { SpareFiles } from "./spare-files.ts";
import { syncDirectory, WalSync } from "./wal-sync.ts";

const READABLE_LENGTH = 40;
/** No database is smaller: the tables alone take more. */
const LEAST_BYTES = 4096;
/** How long a log grows before it is moved into the main file. */
const LOG_BYTES = 4 * 1024 * 1024;
/** How long it may grow within one commit, or without a sync. Then SQLite moves it, inside the commit. */
const MOST_LOG_BYTES = 4 * LOG_BYTES;

/** Where an agent's database is, relative to the host's directory: readable first, unique by the hash of its id. */
export function agentFileName(id: string): string {
  const leaf = parseAgentId(id).at(-1);
  const readable = (leaf?.name ?? "").replace(/[^A-Za-z0-9_-]/g, "_").slice(0, READABLE_LENGTH);
  const hash = createHash("sha256").update(id).digest("hex").slice(0, 24);
  const folder = (leaf?.className ?? "").replace(/[^A-Za-z0-9_-]/g, "_");
  return path.join("agents", folder, `${readable}.${hash}.db`);
}

/** The id that a file's name alone tells, relative to the host's directory: that of most agents without a parent. */
export function plainIdOf(file: string): string | undefined {
  const folder = path.basename(path.dirname(file));
  const readable = path.basename(file).split(".")[0] ?? "";
  const id = `${folder}/${readable}`;
  try {
    return agentFileName(id) === file ? id : undefined;
  } catch {
    return undefined;
  }
}

/** One agent's database as a file. Made by the first write, from a spare. */
export class DiskAgentFile implements AgentFile {
  readonly #id: string;
  readonly #path: string;
  /** Nothing but the file itself tells whose it is. */
  readonly #isUntold: boolean;
  readonly #spares: SpareFiles;
  readonly #maxBytes: number;
  readonly #wal: WalSync;
  #there: boolean | undefined;
  #db: Database.Database | undefined;
  #pageBytes = 1;
  /** Nothing was committed since it was opened, with a log that was new then. */
  #isFirst = false;
  /** The one whose log may not be found after the loss of power. */
  #newLog: Database.Database | undefined;

  constructor(dir: string, id: string, spares: SpareFiles, maxBytes: number) {
    const name = agentFileName(id);
    const file = path.join(dir, name);
    this.#id = id;
    this.#path = file;
    this.#isUntold = plainIdOf(name) !== id;
    this.#spares = spares;
    this.#maxBytes = maxBytes;
    this.#wal = new WalSync(file);
  }

  exists(): boolean {
    return (this.#there ??= fs.existsSync(this.#path));
  }

  open(): OpenedFile {
    const isNew = !this.exists();
    if (isNew) this.#create();
    // SQLite takes less than a page for a new database; this one has lost its rows.
    else if (isCutOff(this.#path)) throw damaged(this.#path);
    const db = openSqlite(this.#path);
    try {
      // One owner: the lock is held while open, and the log's index lives in memory instead of a file.
      db.pragma("locking_mode = EXCLUSIVE");
      // Files from before have larger pages than new ones.
      this.#pageBytes = isNew ? PAGE_BYTES : Number(db.pragma("page_size", { simple: true }));
      db.pragma(`max_page_count = ${Math.max(1, this.#pages(this.#maxBytes))}`);
      if (!isNew) {
        this.#moveSafely(db);
        migrateAgent(db);
      }
      if (isNew || !isFilled(`${this.#path}-wal`)) this.#beginLog(db);
      this.#db = db;
      if (this.#isUntold && noteAgentId(plainSql(db), this.#id)) this.committed();
      return isNew ? { db, filled: this.#isUntold ? [CELL_TABLE] : [] } : { db };
    } catch (thrown) {
      db.close();
      this.closed();
      throw thrown;
    }
  }

  async sync(): Promise<void> {
    const begun = this.#newLog;
    const entries = begun === undefined ? this.#spares.settle(this.#path) : syncDirectory(path.dirname(this.#path));
    await Promise.all([this.#wal.sync(), entries]);
    if (begun !== undefined) this.#spares.forget(this.#path);
    if (this.#newLog === begun) this.#newLog = undefined;
    if (this.#wal.bytes >= LOG_BYTES && logPages(this.#db) >= this.#pages(LOG_BYTES))
      setImmediate(() => this.#moveLog());
  }

  committed(): void {
    this.beforeMove();
  }

  beforeMove(): void {
    if (this.#db !== undefined && this.#isFirst) this.#moveSafely(this.#db);
  }

  /**
   * In its first commit to a new log SQLite would sync the log's head and the directory, and everybody would wait. Nothing in it
   * counts before {@link sync}, which covers both.
   */
  #beginLog(db: Database.Database): void {
    db.pragma("synchronous = OFF");
    db.pragma("wal_autocheckpoint = 0");
    this.#isFirst = true;
    this.#newLog = db;
  }

  /** SQLite syncs before and after it moves the log, and may do so. */
  #moveSafely(db: Database.Database): void {
    db.pragma("synchronous = NORMAL");
    db.pragma(`wal_autocheckpoint = ${this.#pages(MOST_LOG_BYTES)}`);
    this.#isFirst = false;
  }

  /** Moves the log into the main file, when nothing waits for it. In a commit, where SQLite would do it, everybody would. */
  #moveLog(): void {
    if (logPages(this.#db) < this.#pages(LOG_BYTES)) return;
    try {
      this.#db?.pragma("wal_checkpoint(PASSIVE)");
    } catch {
      // A full disk: the log goes on growing, as it does when SQLite moves it.
    }
  }

  closed(): void {
    this.#db = undefined;
    this.#newLog = undefined;
    this.#wal.forget();
  }

  /** Deletes it. The database is closed by then. */
  async remove(): Promise<void> {
    this.#wal.forget();
    this.#spares.forget(this.#path);
    for (const suffix of ["", "-wal", "-shm"]) await fs.promises.rm(this.#path + suffix, { force: true });
    await syncDirectory(path.dirname(this.#path));
    this.#there = false;
  }

  #pages(bytes: number): number {
    return Math.floor(bytes / this.#pageBytes);
  }

  #create(): void {
    this.#spares.take(this.#path);
    this.#there = true;
  }
}

/** How much of the log is not in the main file yet. */
function logPages(db: Database.Database | undefined): number {
  const [found] = (db?.pragma("wal_checkpoint(NOOP)") ?? []) as { log: number; checkpointed: number }[];
  return found === undefined ? 0 : found.log - found.checkpointed;
}

function isFilled(file: string): boolean {
  return (fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** Directories of some file systems are as small; what SQLite says about those is right. */
function isCutOff(file: string): boolean {
  const found = fs.statSync(file);
  return found.isFile() && found.size < LEAST_BYTES;
}

function damaged(file: string): PerdureError {
  const advice = "Stop the host, then restore the file from a backup or move it away.";
  return new PerdureError("database_corrupt", `The database file ${file} was cut off, so its rows are lost. ${advice}`);
}

/** An agent's database in memory: lives as long as its host. */
export class MemoryAgentFile implements AgentFile {
  #bytes: Buffer | undefined;
  #db: Database.Database | undefined;
  readonly #template: Uint8Array;

  constructor(template: Uint8Array) {
    this.#template = template;
  }

  exists(): boolean {
    return this.#db !== undefined || this.#bytes !== undefined;
  }

  open(): OpenedFile {
    const isNew = this.#bytes === undefined;
    const bytes = Buffer.from(this.#bytes ?? this.#template);
    // A database in memory has no log.
    bytes[18] = 1;
    bytes[19] = 1;
    const db = openSqlite(bytes);
    const close = db.close.bind(db);
    db.close = () => {
      this.#bytes = db.serialize();
      this.#db = undefined;
      return close();
    };
    this.#db = db;
    return isNew ? { db, filled: [] } : { db };
  }

  sync(): Promise<void> {
    return Promise.resolve();
  }

  closed(): void {}
}
