import { PerdureError } from "../../base/error.ts";
import type { Blobs, SqlRow, SqlValue, WriteLevel } from "../../port.ts";
import { guardStatement } from "../statement-guard.ts";
import { type AgentStore, checkTxEnd, type TxListener } from "../storage.ts";
import type { AgentFile, Handle, HandlePool, Prepared } from "./handle-pool.ts";
import { toSqlError } from "../sql-error.ts";

/** How much of a database is copied in one piece. */
const COPY_BYTES = 256 * 1024;

/** Where a database reports to. */
export interface DatabaseEvents extends TxListener {
  /** Before the first write of this object's life; what it writes elsewhere is there before the agent's rows. */
  firstWrite(): void;
  /** Syncs the agent's rows, and with them what {@link DatabaseEvents.firstWrite} wrote. */
  sync(rows: () => Promise<void>): Promise<void>;
  /** It is about to be let go of. Must not throw. */
  released?(): void;
}

/**
 * One agent's SQLite database. Costs nothing until used: without a file, reads see an empty database that all agents share, and
 * the first write makes the file. Handles come from a bounded pool and may be closed between any two calls.
 *
 * Commits are counted: `needed` is the last that must be synced before output may leave, `synced` the last that is. The gate
 * compares them.
 */
export class AgentDatabase implements AgentStore {
  readonly blobs: Blobs;
  readonly #label: string;
  readonly #file: AgentFile;
  readonly #pool: HandlePool;
  readonly #events: DatabaseEvents;
  #depth = 0;
  #level: WriteLevel = "commit";
  #wrote = false;
  #announced = false;
  #commits = 0;
  #needed = 0;
  #synced = 0;
  #syncing: Promise<void> | undefined;
  #released = false;

  /** @param label names the agent in errors. */
  constructor(label: string, file: AgentFile, pool: HandlePool, blobs: Blobs, events: DatabaseEvents) {
    this.blobs = blobs;
    this.#label = label;
    this.#file = file;
    this.#pool = pool;
    this.#events = events;
  }

  get isReleased(): boolean {
    return this.#released;
  }

  get blank(): boolean {
    return !this.#announced && !this.#file.exists();
  }

  get wrote(): boolean {
    return this.#announced;
  }

  get inTransaction(): boolean {
    return this.#depth > 0;
  }

  get needed(): number {
    return this.#needed;
  }

  get synced(): number {
    return this.#synced;
  }

  sql<T = SqlRow>(query: string, ...args: SqlValue[]): T[] {
    try {
      const handle = this.#handle(false);
      this.#checkTransaction(handle);
      const statement = this.#prepare(handle, query);
      if (typeof statement === "string" || !statement.readonly) return this.#write<T>(query, args, statement);
      return statement.reader ? (statement.all(...args) as T[]) : (statement.run(...args), []);
    } catch (thrown) {
      throw toSqlError(thrown, this.#label);
    }
  }

  tx<T>(work: () => T, level?: WriteLevel): T {
    // Who may only read makes no file by looking.
    const handle = this.#handle(this.#events.refusal() === undefined);
    this.#checkTransaction(handle);
    const outermost = this.#depth === 0;
    if (outermost) {
      this.#level = level ?? "sync";
      this.#wrote = false;
    } else if (level === "sync") this.#level = "sync";
    const name = `p${this.#depth}`;
    this.#control(handle, outermost ? "BEGIN" : `SAVEPOINT ${name}`);
    const mark = this.#events.mark();
    this.#depth++;
    let result: T;
    try {
      result = work();
      checkTxEnd(result, this.#label, this.#released);
      if (outermost && this.#wrote) this.#announce();
      this.#control(handle, outermost ? "COMMIT" : `RELEASE ${name}`);
    } catch (thrown) {
      this.#depth--;
      this.#undo(handle, outermost, name);
      this.#events.rolledBack(mark);
      throw thrown;
    }
    this.#depth--;
    if (outermost) handle.committed();
    if (outermost) this.#committed(this.#wrote ? this.#level : undefined);
    return result;
  }

  /** Resolves when every commit so far survives the loss of power. Several callers share one sync. */
  async durable(): Promise<void> {
    const target = this.#commits;
    while (this.#synced < target) {
      this.#syncing ??= this.#sync().finally(() => {
        this.#syncing = undefined;
      });
      await this.#syncing;
    }
  }

  /** Rewrites the file without deleted rows, and leaves nothing of them in the log. @throws PerdureError `bad_state` in a transaction, `disk_full` */
  async scrub(): Promise<void> {
    if (this.#depth > 0) throw new PerdureError("bad_state", "A database cannot be rewritten inside a transaction.");
    const handle = this.#handle(false);
    if (this.blank) return;
    this.#checkTransaction(handle);
    this.#file.beforeMove?.();
    this.#control(handle, "VACUUM");
    try {
      if (this.#file.rewritten === undefined) handle.db.pragma("wal_checkpoint(TRUNCATE)");
      else await this.#file.rewritten();
    } catch (thrown) {
      throw toSqlError(thrown, this.#label);
    }
  }

  /** All rows as one file, as they are now. Blocks for as long as copying that much memory takes. */
  serialize(): Uint8Array {
    const { db } = this.#handle(false);
    this.#checkTransaction(this.#handle(false));
    return db.serialize();
  }

  /**
   * Copies all rows into a file, a piece at a time, with others having their turn. What is written meanwhile is in the copy too.
   * Rejects when the database is closed before the end.
   */
  async copyTo(file: string): Promise<void> {
    const handle = this.#handle(false);
    const pages = Math.ceil(COPY_BYTES / Number(handle.db.pragma("page_size", { simple: true })));
    handle.isCopied = true;
    try {
      await handle.db.backup(file, { progress: () => pages });
    } finally {
      handle.isCopied = false;
    }
  }

  async release(): Promise<void> {
    this.#events.released?.();
    this.#released = true;
    this.#pool.close(this.#file);
    // SQLite syncs as it closes, so that nothing is pending on a disk of our own.
    if (this.#file.isCache !== true) this.#synced = this.#commits;
    await this.durable();
  }

  async #sync(): Promise<void> {
    const upto = this.#commits;
    try {
      await this.#events.sync(() => this.#pool.sync(this.#file));
    } catch (thrown) {
      throw toSqlError(thrown, this.#label);
    }
    this.#synced = Math.max(this.#synced, upto);
  }

  #write<T>(query: string, args: SqlValue[], found: Prepared): T[] {
    const refusal = this.#events.refusal();
    if (refusal !== undefined) throw refusal;
    if (found === "nothing") return [];
    // A table is made in the same commit as its first row.
    if (found === "first row" && this.#depth === 0) return this.tx(() => this.#write<T>(query, args, found));
    const handle = this.#handle(true);
    if (found === "first row") handle.makeTables(query);
    const statement = this.#prepare(handle, query);
    if (typeof statement === "string") return [];
    if (this.#depth === 0) this.#announce();
    const rows = statement.reader ? (statement.all(...args) as T[]) : (statement.run(...args), []);
    this.#wrote = true;
    if (this.#depth === 0) this.#committed("sync");
    return rows;
  }

  #announce(): void {
    if (this.#announced) return;
    this.#events.firstWrite();
    this.#announced = true;
  }

  #committed(level: WriteLevel | undefined): void {
    if (level !== undefined) {
      this.#commits++;
      if (level === "sync" || this.#file.isCache === true) this.#needed = this.#commits;
      this.#file.committed?.(level);
    }
    // First of all: a crash test may end the process here, before anything is sent.
    if (level !== undefined) this.#pool.onCommit?.(this.#label);
    this.#events.committed();
  }

  /**
   * Makes sure that SQLite and we mean the same transaction. SQLite undoes one by itself on some failures (a full disk), and the
   * next statement would commit by itself; running out of stack can leave one open, and what comes next would be lost.
   */
  #checkTransaction(handle: Handle): void {
    const { inTransaction } = handle.db;
    if (inTransaction === this.#depth > 0) return;
    if (inTransaction) {
      handle.undone();
      this.#control(handle, "ROLLBACK");
      this.#events.rolledBack(0);
      return;
    }
    throw new PerdureError(
      "sql_failed",
      `SQLite undid the transaction of ${this.#label} after a failure. Start a new one.`,
    );
  }

  #undo(handle: Handle, outermost: boolean, name: string): void {
    handle.undone();
    // SQLite ends a transaction by itself on some failures, such as a full disk.
    if (!handle.db.inTransaction) return;
    if (outermost) return this.#control(handle, "ROLLBACK");
    this.#control(handle, `ROLLBACK TO ${name}`);
    this.#control(handle, `RELEASE ${name}`);
  }

  #handle(forWrite: boolean): Handle {
    try {
      return this.#pool.handle(this.#file, forWrite);
    } catch (thrown) {
      throw toSqlError(thrown, this.#label);
    }
  }

  #control(handle: Handle, query: string): void {
    try {
      handle.control(query).run();
    } catch (thrown) {
      throw toSqlError(thrown, this.#label);
    }
  }

  #prepare(handle: Handle, query: string): Prepared {
    return handle.known(query) ?? (guardStatement(query), handle.prepare(query));
  }
}
