import { randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import type Database from "better-sqlite3";
import { errorText, PerdureError } from "../../base/error.ts";
import type { AuditBook } from "../../admin/house.ts";
import type { LostChild } from "../storage.ts";
import { findAgentsOnDisk } from "./find-agents-on-disk.ts";
import { auditIn } from "./host-db-audit.ts";
import { type Erasures, erasuresIn } from "./host-db-erased.ts";
import { type IndexMark, MarkFile, readMark, writeNew } from "./index-mark.ts";
import { openSqlite } from "./open-sqlite.ts";
import { makePrivateFile } from "./private-files.ts";
import { WalSync } from "./wal-sync.ts";

/** How often a lock that another process has is tried again. */
const LOCK_POLL_MS = 50;
/** How many writes the log may hold before it is moved into the main file. */
const LOG_WRITES = 400;

/** The databases that hosts of this process have open, by device and inode. */
const openHere = new Set<string>();

/**
 * The host's own small database: which agents exist, which were in the middle of something, and when each sleeping one wants to
 * be woken. It holds nothing that an agent could not tell itself; it says whom to ask.
 *
 * `awake` is set before the first commit of a life and cleared, with the alarm of that moment, when it ends in order. After a
 * crash every awake agent is woken and computes its alarm, so this index may be early but never late, at two writes per life.
 *
 * Deleting agents is one commit, which strikes them off and notes them as `doomed`; their files go afterwards, or at the next
 * start. A deleted child is `lost` until its parent has struck it off as well.
 */
export class HostDb {
  /** What was wrong with it as it was opened, in words. */
  readonly notices: readonly string[];
  /** What operators did here. */
  readonly audit: AuditBook;
  /** What was deleted here for good, for backups from before. */
  readonly erasures: Erasures;
  readonly #dir: string;
  readonly #token = randomUUID();
  readonly #marks: MarkFile;
  #count = 0;
  /** The count that the main file has without its log. */
  #base = 0;
  #logged = 0;
  readonly #db: Database.Database;
  readonly #wal: WalSync;
  readonly #owner: string;
  readonly #key: string;
  readonly #statements: ReturnType<typeof prepareAll>;
  readonly #onCommit: (() => void) | undefined;
  #written = 0;
  #synced = 0;
  #syncing: Promise<void> | undefined;
  /** The log may have lost writes that SQLite believes are in it. */
  #suspect = false;

  /**
   * @param onCommit after every write, for crash tests. @param waitMs how long to block until another process lets go of it.
   * @throws PerdureError `directory_locked` when another process, or another host in this one, has it open.
   */
  constructor(dir: string, onCommit?: () => void, waitMs = 0) {
    this.#onCommit = onCommit;
    const file = path.join(dir, "host.db");
    this.#dir = dir;
    this.#owner = path.join(dir, "host.pid");
    this.#wal = new WalSync(file);
    this.#marks = new MarkFile(dir);
    this.#db = openLocked(file, dir, this.#owner, waitMs);
    this.#key = keyOf(file);
    openHere.add(this.#key);
    this.#db.exec(`
      CREATE TABLE IF NOT EXISTS agent (
        id TEXT PRIMARY KEY, at INTEGER, awake INTEGER NOT NULL DEFAULT 0
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX IF NOT EXISTS agent_at ON agent (at) WHERE at IS NOT NULL;
      CREATE INDEX IF NOT EXISTS agent_awake ON agent (awake) WHERE awake = 1;
      CREATE TABLE IF NOT EXISTS doomed (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS lost (child TEXT PRIMARY KEY, parent TEXT NOT NULL) STRICT, WITHOUT ROWID;
      CREATE INDEX IF NOT EXISTS lost_parent ON lost (parent);
      CREATE TABLE IF NOT EXISTS mark (
        one INTEGER PRIMARY KEY CHECK (one = 1), token TEXT NOT NULL, count INTEGER NOT NULL
      ) STRICT;
      CREATE TABLE IF NOT EXISTS backup (one INTEGER PRIMARY KEY CHECK (one = 1), at INTEGER NOT NULL) STRICT;
    `);
    this.#statements = prepareAll(this.#db);
    this.audit = auditIn(this.#db, (work) => this.#write(work));
    this.erasures = erasuresIn(this.#db);
    this.notices = this.#catchUp();
    fs.closeSync(writeNew(this.#owner, String(process.pid)));
  }

  /** Notes that a life of this agent has begun to write. */
  wake(id: string): void {
    this.#write(() => this.#statements.wake.run(id));
    // Not later: whoever is in no copy from before would never be woken.
    this.#marks.count(this.#count);
  }

  /** Notes that the life is over, and when the next one is due. */
  settle(id: string, at: number | null): void {
    this.#write(() => this.#statements.settle.run(id, at));
  }

  awake(): string[] {
    return this.#statements.awake.all();
  }

  /** Whether an agent's last life has not ended in order, and when it is due. */
  entry(id: string): { readonly awake: boolean; readonly due: number | null } {
    const row = this.#statements.entry.get(id);
    return { awake: row?.awake === 1, due: row?.at ?? null };
  }

  /** How much was ever written here. */
  get count(): number {
    return this.#count;
  }

  /** A backup is whole. @param at when it began */
  backedUp(at: number): void {
    this.#write(() => this.#statements.backedUp.run(at));
  }

  lastBackup(): number | null {
    return this.#statements.lastBackup.get() ?? null;
  }

  /** All of it as one file. */
  copy(): Uint8Array {
    return this.#db.serialize();
  }

  due(now: number, limit: number): string[] {
    return this.#statements.due.all(now, limit);
  }

  nextDue(): number | null {
    return this.#statements.nextDue.get() ?? null;
  }

  has(id: string): boolean {
    return this.#statements.has.get(id) !== undefined;
  }

  list(after: string, limit: number): string[] {
    return this.#statements.list.all(after, limit);
  }

  /** `id` and every child below it, deepest last. */
  tree(id: string): string[] {
    // Ids are path segments joined by "/"; "0" is the character after it.
    return this.#statements.tree.all(id, `${id}/`, `${id}0`);
  }

  doom(ids: readonly string[], lost?: LostChild): void {
    const { strike, doom, lose } = this.#statements;
    this.#mark(ids);
    this.#write(() => {
      for (const id of ids) {
        strike.run(id);
        doom.run(id);
        this.erasures.add(id, "agent", this.#count + 1);
      }
      if (lost !== undefined) lose.run(lost.child, lost.parent);
    });
  }

  doomed(): string[] {
    return this.#statements.doomed.all();
  }

  isDoomed(id: string): boolean {
    return this.#statements.isDoomed.get(id) !== undefined;
  }

  /** The files of a doomed agent are gone. */
  removed(id: string): void {
    this.#write(() => this.#statements.removed.run(id));
    if (this.doomed().length === 0) this.#mark();
  }

  lost(parent: string): string[] {
    return this.#statements.lost.all(parent);
  }

  told(child: string): void {
    this.#write(() => this.#statements.told.run(child));
  }

  async erased(id: string, scope: string): Promise<void> {
    this.#write(() => this.erasures.add(id, scope, this.#count + 1));
    await this.durable();
  }

  /** Resolves when everything written here survives the loss of power. Several callers share one sync. */
  async durable(): Promise<void> {
    const target = this.#written;
    while (this.#synced < target) {
      this.#syncing ??= this.#sync().finally(() => {
        this.#syncing = undefined;
      });
      await this.#syncing;
    }
  }

  async #sync(): Promise<void> {
    const upto = this.#written;
    if (this.#suspect) this.#moveOut();
    else {
      try {
        await this.#wal.sync();
      } catch (thrown) {
        this.#suspect = true;
        throw thrown;
      }
    }
    this.#synced = Math.max(this.#synced, upto);
  }

  /**
   * Writes everything anew, into the main file: after a failed sync, another on the same log may succeed without having written a
   * byte. Blocks, which for a disk that just failed is the lesser evil.
   */
  #moveOut(): void {
    const [result] = this.#db.pragma("wal_checkpoint(TRUNCATE)") as { busy: number }[];
    if (result?.busy !== 0) throw new PerdureError("sql_failed", "The host database could not be written to its file.");
    this.#suspect = false;
    this.#noteBase();
  }

  close(): void {
    this.#db.close();
    openHere.delete(this.#key);
    this.#marks.close();
    this.#wal.forget();
    fs.rmSync(this.#owner, { force: true });
  }

  /** Compares it with what was noted beside the agents' files; missing or older than that, it is made anew from them. */
  #catchUp(): string[] {
    const mark = readMark(this.#dir);
    const row = this.#statements.readMark.get();
    const isBlank = this.#statements.list.get("", 1) === undefined;
    const isBehind =
      mark === undefined
        ? // An index from before there were marks counts as it is.
          row !== undefined || isBlank
        : row === undefined || row.token !== mark.token || row.count < mark.count;
    this.#count = Math.max(mark?.count ?? 0, row?.count ?? 0);
    const found = isBehind ? findAgentsOnDisk(this.#dir) : undefined;
    if (found !== undefined) this.#rebuild(found.ids, mark?.doomed ?? []);
    this.#base = mark?.base ?? 0;
    this.#mark(this.doomed());
    this.#moveLog();
    if (found === undefined || found.ids.length + found.unknown.length === 0) return [];
    const words =
      `The index of agents, ${path.join(this.#dir, "host.db")}, was missing or an older copy. It was made anew from the ` +
      `files of ${found.ids.length} agents, which are all woken to look for work that is due.`;
    const unknown = found.unknown.map((file) => `Nothing tells whose file ${file} is. It was left as it is, unused.`);
    return [words, ...unknown];
  }

  /** What it holds of agents that have files, and of those alone: each is to look for itself what it has to do. */
  #rebuild(ids: readonly string[], doomed: readonly string[]): void {
    const { clear, undoom, lose, allLost, told, wake, strike, doom } = this.#statements;
    const there = new Set(ids);
    this.#write(() => {
      clear.run();
      // A host that came after this copy has deleted them; whoever has the name now is another.
      undoom.run();
      for (const child of allLost.all()) if (there.has(child)) told.run(child);
      for (const id of ids) wake.run(id);
      for (const id of doomed) {
        strike.run(id);
        doom.run(id);
        // Two segments are a step: see `agentId`.
        const parent = id.split("/").slice(0, -2).join("/");
        if (there.has(parent) && !doomed.includes(parent)) lose.run(id, parent);
      }
    });
  }

  /** Notes, here first, that the index has gone on. @param alsoDoomed about to be deleted */
  #mark(alsoDoomed: readonly string[] = []): void {
    this.#statements.mark.run(this.#token, ++this.#count);
    this.#writeMark(alsoDoomed);
  }

  #writeMark(alsoDoomed: readonly string[] = []): void {
    const doomed = [...new Set([...this.doomed(), ...alsoDoomed])];
    this.#marks.write({ token: this.#token, count: this.#count, base: this.#base, doomed });
  }

  /** One commit, which counts. */
  #write(work: () => void): void {
    this.#db.transaction(() => {
      work();
      this.#statements.mark.run(this.#token, ++this.#count);
    })();
    this.#written++;
    this.#onCommit?.();
    if (++this.#logged >= LOG_WRITES && !this.#suspect) this.#moveLog();
  }

  /** Moves the log into the main file, and notes how far that has come. Where it cannot be done now, it is later. */
  #moveLog(): void {
    this.#logged = 0;
    try {
      const [result] = this.#db.pragma("wal_checkpoint(PASSIVE)") as { log: number; checkpointed: number }[];
      if (result !== undefined && result.log === result.checkpointed) this.#noteBase();
    } catch {
      // A full disk: the log goes on growing, as SQLite's own would.
    }
  }

  #noteBase(): void {
    this.#base = this.#count;
    this.#writeMark();
  }
}

function prepareAll(db: Database.Database) {
  return {
    wake: db.prepare<[string]>(
      "INSERT INTO agent (id, awake) VALUES (?, 1) ON CONFLICT (id) DO UPDATE SET awake = 1, at = NULL",
    ),
    settle: db.prepare<[string, number | null]>(
      "INSERT INTO agent (id, at, awake) VALUES (?, ?, 0) ON CONFLICT (id) DO UPDATE SET at = excluded.at, awake = 0",
    ),
    awake: db.prepare<[], string>("SELECT id FROM agent WHERE awake = 1 ORDER BY id").pluck(),
    due: db
      .prepare<[number, number], string>(
        "SELECT id FROM agent WHERE at IS NOT NULL AND at <= ? ORDER BY at LIMIT (SELECT ?)",
      )
      .pluck(),
    nextDue: db.prepare<[], number>("SELECT min(at) FROM agent WHERE at IS NOT NULL").pluck(),
    entry: db.prepare<[string], { awake: number; at: number | null }>("SELECT awake, at FROM agent WHERE id = ?"),
    has: db.prepare<[string], number>("SELECT 1 FROM agent WHERE id = ?").pluck(),
    list: db
      .prepare<[string, number], string>("SELECT id FROM agent WHERE id > ? ORDER BY id LIMIT (SELECT ?)")
      .pluck(),
    tree: db
      .prepare<[string, string, string], string>(
        "SELECT id FROM agent WHERE id = ? OR (id >= ? AND id < ?) ORDER BY id",
      )
      .pluck(),
    strike: db.prepare<[string]>("DELETE FROM agent WHERE id = ?"),
    doom: db.prepare<[string]>("INSERT INTO doomed (id) VALUES (?) ON CONFLICT DO NOTHING"),
    doomed: db.prepare<[], string>("SELECT id FROM doomed ORDER BY id DESC").pluck(),
    isDoomed: db.prepare<[string], number>("SELECT 1 FROM doomed WHERE id = ?").pluck(),
    removed: db.prepare<[string]>("DELETE FROM doomed WHERE id = ?"),
    lose: db.prepare<[string, string]>("INSERT INTO lost (child, parent) VALUES (?, ?) ON CONFLICT DO NOTHING"),
    lost: db.prepare<[string], string>("SELECT child FROM lost WHERE parent = ?").pluck(),
    told: db.prepare<[string]>("DELETE FROM lost WHERE child = ?"),
    allLost: db.prepare<[], string>("SELECT child FROM lost").pluck(),
    backedUp: db.prepare<[number]>("INSERT OR REPLACE INTO backup (one, at) VALUES (1, ?)"),
    lastBackup: db.prepare<[], number>("SELECT at FROM backup").pluck(),
    clear: db.prepare<[]>("DELETE FROM agent"),
    undoom: db.prepare<[]>("DELETE FROM doomed"),
    readMark: db.prepare<[], { token: string; count: number }>("SELECT token, count FROM mark"),
    mark: db.prepare<[string, number]>("INSERT OR REPLACE INTO mark (one, token, count) VALUES (1, ?, ?)"),
  };
}

/** The lock is SQLite's own on the host database: the system frees it however the process dies, so none is ever stale. */
function openLocked(file: string, dir: string, owner: string, waitMs: number): Database.Database {
  const deadline = Date.now() + waitMs;
  for (;;) {
    try {
      return tryLock(file, dir, owner);
    } catch (thrown) {
      if (!PerdureError.is(thrown, "directory_locked") || Date.now() >= deadline) throw thrown;
      // Nothing else can be done without the data: whoever makes a host waits for it.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_POLL_MS);
    }
  }
}

function tryLock(file: string, dir: string, owner: string): Database.Database {
  const db = openFile(file);
  try {
    db.pragma("locking_mode = EXCLUSIVE");
    db.pragma("journal_mode = WAL");
    db.pragma("synchronous = NORMAL");
    // The host moves the log itself, to know how far the main file has come.
    db.pragma("wal_autocheckpoint = 0");
    db.exec("BEGIN IMMEDIATE; COMMIT");
    return db;
  } catch (thrown) {
    db.close();
    if (!/locked|busy/i.test(errorText(thrown))) {
      throw new PerdureError(
        "database_corrupt",
        `The host database ${file} cannot be opened: ${errorText(thrown)}. Move it away, with ${file}-wal if it exists: the next start rebuilds it from the agents' files.`,
        {
          cause: thrown,
        },
      );
    }
    const pid = fs.existsSync(owner) ? fs.readFileSync(owner, "utf8") : "unknown";
    throw new PerdureError(
      "directory_locked",
      `The directory ${dir} is in use by another Perdure host (process ${pid}). ` +
        "Stop that one first, or give this one its own directory. If that one is just stopping, the option " +
        "`lock: { waitMs: 10_000 }` waits for it.",
      { cause: thrown },
    );
  }
}

function keyOf(file: string): string {
  const { dev, ino } = fs.statSync(file);
  return `${dev}:${ino}`;
}

function openFile(file: string): Database.Database {
  try {
    makePrivateFile(file);
    if (!openHere.has(keyOf(file))) dropForeignLog(file, readMark(path.dirname(file)));
    return openSqlite(file, { timeout: 0 });
  } catch (thrown) {
    throw new PerdureError("bad_config", `The host database ${file} cannot be opened: ${errorText(thrown)}`, {
      cause: thrown,
    });
  }
}

/** Where the header of a database says how it is written and read: with a log, or without. */
const JOURNAL_BYTES = [18, 19];
const WITHOUT_LOG = 1;

/**
 * Deletes a log that is not its main file's own: beside an older copy of the file, SQLite would mix the two. Only for a file that
 * nothing in this process has open: closing it would drop SQLite's locks.
 */
function dropForeignLog(file: string, mark: IndexMark | undefined): void {
  if (mark?.base === undefined || !isFilled(`${file}-wal`)) return;
  const own = countAlone(file);
  if (own === undefined || own >= mark.base) return;
  fs.rmSync(`${file}-wal`, { force: true });
  fs.rmSync(`${file}-shm`, { force: true });
}

/** How far the main file has come by itself. Undefined: it does not say. */
function countAlone(file: string): number | undefined {
  try {
    const bytes = fs.readFileSync(file);
    for (const at of JOURNAL_BYTES) bytes[at] = WITHOUT_LOG;
    const db = openSqlite(bytes);
    try {
      return db.prepare<[], number>("SELECT count FROM mark").pluck().get();
    } finally {
      db.close();
    }
  } catch {
    return undefined;
  }
}

function isFilled(file: string): boolean {
  return (fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
}
