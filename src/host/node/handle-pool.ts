import type BetterSqlite3 from "better-sqlite3";
import type { SqlValue, WriteLevel } from "../../port.ts";
import { absentTables, type Detour, detour, makeLateTable, tablesOf } from "../../store/late-tables.ts";
import { RESERVED_PREFIX } from "../../store/migrations.ts";
import { lateTables, plainSql, rowlessTables } from "./open-sqlite.ts";

type Statement = BetterSqlite3.Statement<SqlValue[]>;

/** Statements that a handle keeps prepared. Agents use a few dozen; only generated SQL has more. */
const MAX_STATEMENTS = 256;

/** Where one agent's bytes are, and how they are opened and synced. */
export interface AgentFile {
  exists(): boolean;
  /** Opens the database, making it first if need be, and brings its schema up to date. */
  open(): OpenedFile;
  /** Makes everything that SQLite has written survive the loss of power; off the event loop. */
  sync(): Promise<void>;
  /** The bytes end with this process, and are kept elsewhere: there is no commit that output need not wait for. */
  readonly isCache?: boolean;
  /** There was a commit. */
  committed?(level: WriteLevel): void;
  /** SQLite is to move its log into the file. */
  beforeMove?(): void;
  /** All of the open database was written anew: forgets for good what stood in it before. Default: its log is emptied. */
  rewritten?(): Promise<void>;
  /** The database was closed: forget descriptors. */
  closed(): void;
}

/** An agent's database as it was found. */
export interface OpenedFile {
  readonly db: BetterSqlite3.Database;
  /** Of one that was just made: the framework's tables that have rows all the same. */
  readonly filled?: readonly string[];
}

/** What became of a query: a statement to run, or a reason why there is none. */
export type Prepared =
  | Statement
  /** The table has no rows that it could change. */
  | "nothing"
  /** It adds the first row of a table, which must be made before: see {@link Handle.makeTables}. */
  | "first row";

/** An open database with its prepared statements. */
export class Handle {
  readonly db: BetterSqlite3.Database;
  readonly #statements = new Map<string, Statement | "nothing">();
  /** Kept apart: what the host may run, an agent may not. */
  readonly #control = new Map<string, Statement>();
  /** Late tables that are not there; undefined: nobody has asked. */
  #absent: Set<string> | undefined;
  /** Tables were made in this transaction. */
  #made = false;
  readonly #empty: Handle | undefined;
  /** Tables that are there and never had a row. */
  readonly #rowless = new Set<string>();
  /** What is known of queries as long as the tables that they name have no rows. */
  readonly #whileEmpty = new Map<string, Statement | "nothing">();
  /** It is being copied, and stays open. */
  isCopied = false;

  /**
   * @param empty a database with the schema and no rows. Reads that find nothing run there: to prepare a statement takes longer
   *   than to run it, and each database needs its own.
   * @param filled see {@link OpenedFile.filled}
   */
  constructor(db: BetterSqlite3.Database, empty?: Handle, filled?: readonly string[]) {
    this.db = db;
    this.#empty = empty;
    if (filled === undefined) return;
    this.#absent = new Set(lateTables().keys());
    this.#rowless = new Set(rowlessTables());
    for (const name of filled) this.#rowless.delete(name);
  }

  known(query: string): Prepared | undefined {
    return this.#statements.get(query) ?? this.#whileEmpty.get(query);
  }

  /** The host's own BEGIN, COMMIT and savepoints. */
  control(query: string): Statement {
    let statement = this.#control.get(query);
    if (statement === undefined) this.#control.set(query, (statement = this.db.prepare<SqlValue[]>(query)));
    return statement;
  }

  prepare(query: string): Prepared {
    const known = this.known(query);
    if (known !== undefined) return known;
    const spared = this.#onEmpty(query);
    if (spared !== undefined) {
      this.#whileEmpty.set(query, spared);
      return spared;
    }
    const way = this.#detour(query);
    if (way !== undefined && "make" in way) return "first row";
    const prepared =
      way !== undefined && "nothing" in way ? "nothing" : this.db.prepare<SqlValue[]>(way?.query ?? query);
    if (this.#statements.size >= MAX_STATEMENTS) {
      const oldest = this.#statements.keys().next();
      if (!oldest.done) this.#statements.delete(oldest.value);
    }
    this.#statements.set(query, prepared);
    return prepared;
  }

  /** Makes the tables that a query needs to add a row. In a transaction: that of the row. */
  makeTables(query: string): void {
    const way = this.#detour(query);
    if (way === undefined || !("make" in way)) return;
    for (const name of way.make) makeLateTable(plainSql(this.db), lateTables(), name);
    this.#made = true;
    this.#forgetTables();
  }

  /** A transaction was undone, or a part of one, and tables with it. */
  undone(): void {
    if (this.#made) this.#forgetTables();
  }

  committed(): void {
    this.#made = false;
  }

  #detour(query: string): Detour | undefined {
    if (!query.includes(RESERVED_PREFIX)) return undefined;
    const absent = this.#lookForAbsent();
    return absent.size === 0 ? undefined : detour(query, lateTables(), absent);
  }

  /** How to run a query that is about tables without rows, and them alone; undefined when it is not, or adds one. */
  #onEmpty(query: string): Statement | "nothing" | undefined {
    if (this.#empty === undefined || !query.includes(RESERVED_PREFIX)) return undefined;
    const { names, isAboutRows, verb, target } = tablesOf(query);
    if (!isAboutRows) return undefined;
    const absent = this.#lookForAbsent();
    const isEmpty = (name: string) => absent.has(name) || this.#rowless.has(name);
    if (verb === "INSERT") {
      // Others may have counted on that there was none.
      if (this.#rowless.delete(target)) this.#whileEmpty.clear();
      return undefined;
    }
    if (verb !== undefined) return isEmpty(target) ? "nothing" : undefined;
    if (!names.every(isEmpty)) return undefined;
    const prepared = this.#empty.prepare(query);
    return typeof prepared === "object" && prepared.readonly && prepared.reader ? prepared : undefined;
  }

  #lookForAbsent(): Set<string> {
    return (this.#absent ??= absentTables(plainSql(this.db)));
  }

  /** Which tables there are is no longer known, and statements may be about others. */
  #forgetTables(): void {
    this.#absent = undefined;
    this.#statements.clear();
    this.#whileEmpty.clear();
  }
}

/** The open databases of a host, at most `limit`; the least recently used is closed to make room, never in a transaction or a copy. */
export class HandlePool {
  readonly #limit: number;
  readonly #empty: Handle;
  readonly #open = new Map<AgentFile, Handle>();
  #last: AgentFile | undefined;
  /** After every commit of an agent database, for crash tests. */
  onCommit: ((label: string) => void) | undefined;

  /** @param empty answers reads of agents that have no file yet: a database with the schema and no rows. */
  constructor(limit: number, empty: BetterSqlite3.Database) {
    this.#limit = limit;
    this.#empty = new Handle(empty);
  }

  get size(): number {
    return this.#open.size;
  }

  handle(file: AgentFile, forWrite: boolean): Handle {
    const open = this.#open.get(file);
    if (open !== undefined) {
      if (this.#last !== file) this.#touch(file, open);
      return open;
    }
    if (!forWrite && !file.exists()) return this.#empty;
    this.#makeRoom();
    const { db, filled } = file.open();
    const handle = new Handle(db, this.#empty, filled);
    this.#touch(file, handle);
    return handle;
  }

  async sync(file: AgentFile): Promise<void> {
    await file.sync();
  }

  close(file: AgentFile): void {
    const handle = this.#open.get(file);
    if (handle === undefined) return;
    this.#open.delete(file);
    if (this.#last === file) this.#last = undefined;
    try {
      handle.db.close();
    } finally {
      file.closed();
    }
  }

  closeAll(): void {
    for (const file of [...this.#open.keys()]) this.close(file);
    this.#empty.db.close();
  }

  #touch(file: AgentFile, handle: Handle): void {
    this.#open.delete(file);
    this.#open.set(file, handle);
    this.#last = file;
  }

  #makeRoom(): void {
    for (const [file, handle] of this.#open) {
      if (this.#open.size < this.#limit) return;
      if (!handle.db.inTransaction && !handle.isCopied) this.close(file);
    }
  }
}
