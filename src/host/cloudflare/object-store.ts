import { PerdureError } from "../../base/error.ts";
import type { Blobs, SqlRow, SqlValue, WriteLevel } from "../../port.ts";
import { migrate } from "../../store/migrations.ts";
import { toSqlError } from "../sql-error.ts";
import { guardStatement, isReading } from "../statement-guard.ts";
import { type AgentStore, checkTxEnd, type TxListener } from "../storage.ts";
import { hasTables, rowBlobs } from "./object-rows.ts";
import type { ObjectStorage } from "./platform.ts";

/** Statements that were judged; agents use a few dozen. */
const MAX_JUDGED = 2_000;

/** Whether a statement only reads, by its text. */
const judged = new Map<string, boolean>();

/**
 * An agent's rows in its object's own SQLite. The platform holds back whatever leaves the object until the writes before it are
 * confirmed, at both levels; so the gate here waits for one thing alone, that the parent lists a child which stores its first row.
 *
 * An address that was only looked at stores nothing: until the first write, each statement runs in a transaction that makes the
 * tables and is undone.
 */
export class ObjectStore implements AgentStore {
  readonly blobs: Blobs;
  readonly #label: string;
  readonly #storage: ObjectStorage;
  readonly #listener: TxListener;
  readonly #onWrite: () => void;
  #blank: boolean;
  #current = false;
  #depth = 0;
  /** The transaction under way has written. */
  #dirty = false;
  #wrote = false;
  #released = false;
  #created: Promise<void> | undefined;
  #needed = 0;
  #synced = 0;

  /** @param onWrite something was stored */
  constructor(label: string, storage: ObjectStorage, listener: TxListener, onWrite: () => void) {
    this.#label = label;
    this.#storage = storage;
    this.#listener = listener;
    this.#onWrite = onWrite;
    this.#blank = !hasTables(storage);
    this.blobs = rowBlobs(storage, () => this.#tx(() => this.#change()));
  }

  get blank(): boolean {
    return this.#blank;
  }

  get wrote(): boolean {
    return this.#wrote;
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
    const reads = readsOnly(query);
    const refusal = reads ? undefined : this.#listener.refusal();
    if (refusal !== undefined) throw refusal;
    return this.#depth > 0 ? this.#run<T>(query, args, reads) : this.#tx(() => this.#run<T>(query, args, reads));
  }

  tx<T>(work: () => T, _level?: WriteLevel): T {
    const isOutermost = this.#depth === 0;
    const mark = this.#listener.mark();
    this.#depth++;
    let result: T;
    try {
      result = this.#tx(() => {
        const value = work();
        checkTxEnd(value, this.#label, this.#released);
        if (isOutermost && this.#dirty) this.#announce();
        return value;
      });
    } catch (thrown) {
      this.#depth--;
      if (isOutermost) this.#dirty = false;
      this.#listener.rolledBack(mark);
      throw thrown;
    }
    this.#depth--;
    if (!isOutermost) return result;
    this.#dirty = false;
    this.#listener.committed();
    return result;
  }

  async durable(): Promise<void> {
    const upto = this.#needed;
    await this.#created;
    await this.#storage.sync();
    this.#synced = Math.max(this.#synced, upto);
  }

  release(): Promise<void> {
    this.#released = true;
    return Promise.resolve();
  }

  #run<T>(query: string, args: readonly SqlValue[], reads: boolean): T[] {
    let rows: Record<string, unknown>[];
    try {
      rows = this.#storage.sql.exec(query, ...args).toArray();
    } catch (thrown) {
      throw toSqlError(thrown, this.#label);
    }
    for (const row of rows) {
      for (const name in row) if (row[name] instanceof ArrayBuffer) row[name] = new Uint8Array(row[name]);
    }
    if (!reads) this.#change();
    return rows as T[];
  }

  /** Runs `work` where the tables are there and of today. What only read leaves no trace. */
  #tx<T>(work: () => T): T {
    const storage = this.#storage;
    if (this.#current) return this.#depth > 0 ? storage.transactionSync(work) : work();
    const wasBlank = this.#blank;
    let result: { readonly value: T } | undefined;
    try {
      storage.transactionSync(() => {
        this.#migrate();
        this.#current = true;
        try {
          result = { value: work() };
        } finally {
          this.#current = false;
        }
        if (wasBlank && this.#blank) throw new OnlyRead();
      });
    } catch (thrown) {
      this.#blank = wasBlank;
      if (thrown instanceof OnlyRead && result !== undefined) return result.value;
      throw thrown;
    }
    this.#current = true;
    if (result === undefined) throw new PerdureError("bad_state", `A transaction of ${this.#label} did not run.`);
    return result.value;
  }

  #migrate(): void {
    const { sql } = this.#storage;
    migrate({
      sql: <R>(query: string, ...args: SqlValue[]) => sql.exec(query, ...args).toArray() as R[],
      tx: (work) => this.#storage.transactionSync(work),
    });
  }

  #change(): void {
    this.#blank = false;
    if (this.#depth > 0) this.#dirty = true;
    else this.#announce();
  }

  #announce(): void {
    if (!this.#wrote) {
      this.#wrote = true;
      this.#created = this.#listener.created?.();
      if (this.#created !== undefined) this.#needed++;
    }
    this.#onWrite();
  }
}

/** Undoes a transaction that was only needed to look. */
class OnlyRead extends Error {}

/** @throws PerdureError `sql_refused` */
function readsOnly(query: string): boolean {
  let reads = judged.get(query);
  if (reads === undefined) {
    guardStatement(query);
    reads = isReading(query);
    if (judged.size >= MAX_JUDGED) judged.clear();
    judged.set(query, reads);
  }
  return reads;
}
