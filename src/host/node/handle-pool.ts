import type BetterSqlite3 from "better-sqlite3";
import type { SqlValue } from "../../port.ts";

type Statement = BetterSqlite3.Statement<SqlValue[]>;

/** Statements that a handle keeps prepared. Agents use a few dozen; only generated SQL has more. */
const MAX_STATEMENTS = 256;

/** Where one agent's bytes are, and how they are opened and synced. */
export interface AgentFile {
  exists(): boolean;
  /** Opens the database, making it first if need be, and brings its schema up to date. */
  open(): BetterSqlite3.Database;
  /** Makes everything that SQLite has written survive the loss of power; off the event loop. */
  sync(): Promise<void>;
  /** The database was closed: forget descriptors. */
  closed(): void;
}

/** An open database with its prepared statements. */
export class Handle {
  readonly db: BetterSqlite3.Database;
  readonly #statements = new Map<string, Statement>();
  /** Kept apart: what the host may run, an agent may not. */
  readonly #control = new Map<string, Statement>();

  constructor(db: BetterSqlite3.Database) {
    this.db = db;
  }

  known(query: string): Statement | undefined {
    return this.#statements.get(query);
  }

  /** The host's own BEGIN, COMMIT and savepoints. */
  control(query: string): Statement {
    let statement = this.#control.get(query);
    if (statement === undefined) this.#control.set(query, (statement = this.db.prepare<SqlValue[]>(query)));
    return statement;
  }

  prepare(query: string): Statement {
    const known = this.#statements.get(query);
    if (known !== undefined) return known;
    const statement = this.db.prepare<SqlValue[]>(query);
    if (this.#statements.size >= MAX_STATEMENTS) {
      const oldest = this.#statements.keys().next();
      if (!oldest.done) this.#statements.delete(oldest.value);
    }
    this.#statements.set(query, statement);
    return statement;
  }
}

/** The open databases of a host, at most `limit`; the least recently used is closed to make room, never in a transaction. */
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
    const handle = new Handle(file.open());
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
      if (!handle.db.inTransaction) this.close(file);
    }
  }
}
