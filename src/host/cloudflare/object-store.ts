import type { Blobs, SqlRow, SqlValue, WriteLevel } from "../../port.ts";
import { absentTables, type Detour, detour, makeLateTable, makeTables, migrateLate } from "../../store/late-tables.ts";
import { RESERVED_PREFIX } from "../../store/migrations.ts";
import { toSqlError } from "../sql-error.ts";
import { guardStatement, isReading } from "../statement-guard.ts";
import { type AgentStore, checkTxEnd, type TxListener } from "../storage.ts";
import { bucketBlobs } from "./bucket-blobs.ts";
import { hasTables, rowBlobs } from "./object-rows.ts";
import { lateTablesAfter, newestTables, plainSql } from "./object-schema.ts";
import type { Bucket, ObjectStorage } from "./platform.ts";

/** Statements that were judged; agents use a few dozen. */
const MAX_JUDGED = 2_000;

/** Whether a statement only reads, by its text. */
const judged = new Map<string, boolean>();

/**
 * An agent's rows in its object's own SQLite. The platform holds back whatever leaves the object until the writes before it are
 * confirmed, at both levels; so the gate here waits for one thing alone, that the parent lists a child which stores its first row.
 *
 * An address that was only looked at stores nothing: until the first write, the framework's tables are there for reads alone, as
 * late tables are.
 */
export class ObjectStore implements AgentStore {
  readonly blobs: Blobs;
  readonly #label: string;
  readonly #storage: ObjectStorage;
  readonly #listener: TxListener;
  readonly #onWrite: () => void;
  #blank: boolean;
  /** Tables of the framework that are not there; undefined: nobody has asked. */
  #absent: Set<string> | undefined;
  /** How to do without them, by query. */
  readonly #ways = new Map<string, Detour | undefined>();
  #depth = 0;
  /** The transaction under way has written. */
  #dirty = false;
  #wrote = false;
  #released = false;
  #created: Promise<void> | undefined;
  #needed = 0;
  #synced = 0;

  /** @param onWrite something was stored @param bucket where large bytes go; undefined: into rows */
  constructor(
    label: string,
    storage: ObjectStorage,
    listener: TxListener,
    onWrite: () => void,
    bucket: Bucket | undefined,
  ) {
    this.#label = label;
    this.#storage = storage;
    this.#listener = listener;
    this.#onWrite = onWrite;
    this.#blank = !hasTables(storage);
    const wrote = () => this.#whole(() => this.#change());
    this.blobs = bucket === undefined ? rowBlobs(storage, wrote) : bucketBlobs(bucket, label, wrote);
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
    if (readsOnly(query)) return this.#run<T>(query, args, this.#way(query));
    const refusal = this.#listener.refusal();
    if (refusal !== undefined) throw refusal;
    const way = this.#way(query);
    if (way !== undefined && "nothing" in way) return [];
    // Tables are made in the same commit as the first row.
    if (this.#blank || (way !== undefined && "make" in way)) return this.#whole(() => this.#write<T>(query, args));
    return this.#write<T>(query, args);
  }

  tx<T>(work: () => T, _level?: WriteLevel): T {
    const isOutermost = this.#depth === 0;
    const mark = this.#listener.mark();
    this.#depth++;
    let result: T;
    try {
      result = this.#undoable(() => {
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

  #write<T>(query: string, args: readonly SqlValue[]): T[] {
    if (this.#blank) this.#begin();
    let way = this.#way(query);
    if (way !== undefined && "make" in way) {
      for (const name of way.make) makeLateTable(plainSql(this.#storage), newestTables(this.#storage), name);
      this.#forgetTables();
      way = this.#way(query);
    }
    const rows = this.#run<T>(query, args, way);
    this.#change();
    return rows;
  }

  #run<T>(query: string, args: readonly SqlValue[], way: Detour | undefined): T[] {
    if (way !== undefined && "nothing" in way) return [];
    let rows: Record<string, unknown>[];
    try {
      rows = this.#storage.sql.exec(way !== undefined && "query" in way ? way.query : query, ...args).toArray();
    } catch (thrown) {
      throw toSqlError(thrown, this.#label);
    }
    for (const row of rows) {
      for (const name in row) if (row[name] instanceof ArrayBuffer) row[name] = new Uint8Array(row[name]);
    }
    return rows as T[];
  }

  /** How a query does without tables that are not there. */
  #way(query: string): Detour | undefined {
    if (!query.includes(RESERVED_PREFIX)) return undefined;
    const absent = (this.#absent ??= this.#absentNow());
    if (absent.size === 0) return undefined;
    let way = this.#ways.get(query);
    if (way === undefined && !this.#ways.has(query)) {
      way = detour(query, newestTables(this.#storage), absent);
      if (this.#ways.size >= MAX_JUDGED) this.#ways.clear();
      this.#ways.set(query, way);
    }
    return way;
  }

  #absentNow(): Set<string> {
    if (this.#blank) return new Set(newestTables(this.#storage).keys());
    const db = plainSql(this.#storage);
    db.tx(() => migrateLate(db, (steps) => lateTablesAfter(this.#storage, steps)));
    return absentTables(db);
  }

  /** The first row is about to be stored. In a transaction: that of the row. */
  #begin(): void {
    makeTables(plainSql(this.#storage), newestTables(this.#storage));
    this.#blank = false;
    this.#forgetTables();
  }

  #forgetTables(): void {
    this.#absent = undefined;
    this.#ways.clear();
  }

  /** Runs `work` in a transaction in which there are tables. */
  #whole<T>(work: () => T): T {
    return this.#undoable(() => {
      if (this.#blank) this.#begin();
      return work();
    });
  }

  #undoable<T>(work: () => T): T {
    try {
      return this.#storage.transactionSync(work);
    } catch (thrown) {
      // Tables that were made are gone again.
      this.#blank = !hasTables(this.#storage);
      this.#forgetTables();
      throw thrown;
    }
  }

  #change(): void {
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
