// A disk in memory: real SQLite for each agent, and an exact account of what the death of a process, or the loss of power,
// leaves of it.
import Database from "better-sqlite3";
import { PerdureError } from "../../src/base/error.ts";
import { AgentDatabase } from "../../src/host/node/database.ts";
import { memoryBlobs } from "../../src/host/node/disk-blobs.ts";
import { indexed } from "../../src/host/node/disk-storage.ts";
import { type AgentFile, Handle, HandlePool, type OpenedFile } from "../../src/host/node/handle-pool.ts";
import { openEmpty, templateBytes } from "../../src/host/node/open-sqlite.ts";
import type { Storage } from "../../src/host/storage.ts";
import type { Blobs } from "../../src/port.ts";
import type { Random } from "../think/interleave-random.ts";
import { HostIndex, type IndexState } from "./host-index.ts";

/** What a process may ask of the disk below it, as far as luck goes. */
export interface DiskLuck {
  /** Whether the process that uses it lives; a dead one changes nothing. */
  readonly alive: boolean;
  /** The next power loss is foreseen: only then is it worth the copies to know what was synced. */
  readonly powerMayFail: boolean;
  /** Resolves when a sync is done. Rejects when the disk fails. Never settles for who is dead. */
  synced(): Promise<void>;
  /** Before a write or a commit. @returns what SQLite would say when it cannot. */
  refused(): "full" | "undone" | undefined;
  committed(agentId: string): void;
}

type Bytes = Buffer | undefined;

/** What is there of one agent. */
interface Platter {
  /** Survives the death of the process. */
  committed: Bytes;
  /** Survives the loss of power. */
  synced: Bytes;
  /** Syncs under way: what they would make survive. */
  readonly flying: Set<{ readonly bytes: Bytes }>;
  /** Open in the living process. */
  open: Database.Database | undefined;
}

const template = bytesInMemory(templateBytes());
/** Answers reads of agents without a file; nothing is ever written to it. */
const empty = openEmpty();

export class Disk {
  readonly #platters = new Map<string, Platter>();
  readonly #blobs = new Map<string, Blobs>();
  readonly #found = new WeakMap<Buffer, unknown>();
  #index = { committed: newIndex(), synced: newIndex(), flying: new Set<IndexState>() };

  /** Every handle that was ever opened, those of the dead as well: their memory is not the collector's. */
  readonly #handles = new Set<Database.Database>();

  /** Lets go of everything. */
  close(): void {
    for (const db of this.#handles) db.close();
    this.#handles.clear();
  }

  /** The storage of one process. */
  mount(luck: DiskLuck): Storage {
    const pool = new HandlePool(Number.POSITIVE_INFINITY, empty);
    pool.onCommit = (id) => luck.committed(id);
    const index = new HostIndex(this.#index, luck);
    return {
      index,
      open: (id, listener) => {
        const file = new File(this.#platter(id), luck, this.#handles);
        return new AgentDatabase(id, file, pool, this.#blobsOf(id), indexed(index, id, listener));
      },
      remove: (id) => {
        if (luck.alive) {
          this.#platters.delete(id);
          this.#blobs.delete(id);
          index.removed(id);
        }
        return Promise.resolve();
      },
      durable: () => index.durable(),
      // The shared empty database stays open, and no life has a file open when its host has stopped.
      close: () => Promise.resolve(),
    };
  }

  /** The process is dead: what it had committed is there. Its own handles lead nowhere from now on. */
  processDied(): void {
    for (const platter of this.#platters.values()) {
      if (platter.open !== undefined) platter.committed = committedIn(platter.open);
      platter.open = undefined;
      platter.flying.clear();
    }
    this.#index = {
      ...this.#index,
      committed: copyIndex(this.#index.committed),
      flying: new Set(),
    };
  }

  /**
   * The power is gone. What was synced is there; of what was only committed, chance says how much, for each file by itself.
   */
  powerFailed(chance: Random): void {
    const lucky = chance.chance(0.5);
    for (const [id, platter] of this.#platters) {
      const left = [platter.synced, ...[...platter.flying].map(({ bytes }) => bytes)];
      left.push(platter.open === undefined ? platter.committed : committedIn(platter.open));
      platter.committed = platter.synced = lucky ? left[chance.int(left.length)] : platter.synced;
      platter.open = undefined;
      platter.flying.clear();
      if (platter.committed === undefined) this.#platters.delete(id);
    }
    // An agent that nobody was told of and that the index has lost would sleep for ever, and nobody would miss it.
    const kept = lucky ? this.#index.committed : this.#index.synced;
    this.#index = { committed: copyIndex(kept), synced: copyIndex(kept), flying: new Set() };
  }

  /** Whatever was only committed so far counts as synced: from now on copies are made. */
  settleAll(): void {
    for (const platter of this.#platters.values()) {
      platter.synced = platter.open === undefined ? platter.committed : platter.open.serialize();
    }
    this.#index.synced = copyIndex(this.#index.committed);
  }

  get agents(): string[] {
    return [...this.#platters.keys()].filter((id) => this.#exists(id)).sort();
  }

  /** Which agents the host's index would wake at this time, or has awake. */
  get index(): IndexState {
    return this.#index.committed;
  }

  /** Reads rows of an agent past everything else. */
  look<T>(id: string, look: (read: <R>(query: string) => R[]) => T): T {
    const platter = this.#platters.get(id);
    const open = platter?.open;
    const db = open ?? new Database(platter?.committed ?? template);
    try {
      const handle = new Handle(db);
      return look(<R>(query: string) => {
        const prepared = handle.prepare(query);
        return typeof prepared === "string" ? [] : (prepared.all() as R[]);
      });
    } finally {
      if (open === undefined) db.close();
    }
  }

  /** The same; what was found in a file that nobody has written to since is not looked for again. */
  lookOnce<T>(id: string, look: (read: <R>(query: string) => R[]) => T): T {
    const { open, committed } = this.#platter(id);
    const known = committed === undefined || open !== undefined ? undefined : this.#found.get(committed);
    if (known !== undefined) return known as T;
    const found = this.look(id, look);
    if (committed !== undefined && open === undefined) this.#found.set(committed, found);
    return found;
  }

  #exists(id: string): boolean {
    const platter = this.#platters.get(id);
    return platter?.open !== undefined || platter?.committed !== undefined;
  }

  #platter(id: string): Platter {
    let platter = this.#platters.get(id);
    if (platter === undefined) {
      platter = { committed: undefined, synced: undefined, flying: new Set(), open: undefined };
      this.#platters.set(id, platter);
    }
    return platter;
  }

  #blobsOf(id: string): Blobs {
    const blobs = this.#blobs.get(id) ?? memoryBlobs();
    this.#blobs.set(id, blobs);
    return blobs;
  }
}

/** One agent's file, as one process has it. */
class File implements AgentFile {
  readonly #platter: Platter;
  readonly #luck: DiskLuck;
  readonly #handles: Set<Database.Database>;

  constructor(platter: Platter, luck: DiskLuck, handles: Set<Database.Database>) {
    this.#platter = platter;
    this.#luck = luck;
    this.#handles = handles;
  }

  exists(): boolean {
    return this.#platter.open !== undefined || this.#platter.committed !== undefined;
  }

  open(): OpenedFile {
    const platter = this.#platter;
    const isNew = platter.committed === undefined;
    const db = new Database(Buffer.from(platter.committed ?? template));
    failing(db, this.#luck);
    this.#handles.add(db);
    // Whoever is dead works on a copy that nobody sees.
    if (!this.#luck.alive) return { db };
    const close = db.close.bind(db);
    db.close = () => {
      if (this.#luck.alive && platter.open === db) {
        platter.committed = platter.synced = db.serialize();
        platter.open = undefined;
      }
      this.#handles.delete(db);
      return close();
    };
    platter.open = db;
    return isNew ? { db, filled: [] } : { db };
  }

  async sync(): Promise<void> {
    const { open } = this.#platter;
    const copy = this.#luck.alive && this.#luck.powerMayFail;
    const flight = {
      bytes: copy && open !== undefined ? open.serialize() : this.#platter.committed,
    };
    if (copy) this.#platter.flying.add(flight);
    try {
      await this.#luck.synced();
      // A sync that began earlier must not take back what a later one, or the end of a life, has made sure.
      if (copy && this.#luck.alive && this.#platter.flying.has(flight) && this.#platter.open === open) {
        this.#platter.synced = flight.bytes;
      }
    } finally {
      this.#platter.flying.delete(flight);
    }
  }

  closed(): void {}
}

/** Lets writes fail as SQLite does when there is no room. */
function failing(db: Database.Database, luck: DiskLuck): void {
  const prepare = db.prepare.bind(db) as (query: string) => Database.Statement;
  const fail = (): void => {
    const how = luck.refused();
    if (how === undefined) return;
    // On some failures SQLite undoes the transaction by itself.
    if (how === "undone" && db.inTransaction) db.exec("ROLLBACK");
    throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
  };
  db.prepare = ((query: string) => {
    const statement = prepare(query);
    if (query !== "COMMIT" && statement.readonly) return statement;
    const run = statement.run.bind(statement);
    statement.run = (...args: unknown[]) => {
      fail();
      return run(...args);
    };
    if (!statement.reader) return statement;
    const all = statement.all.bind(statement);
    statement.all = (...args: unknown[]) => {
      fail();
      return all(...args);
    };
    return statement;
  }) as typeof db.prepare;
}

/** The index may be written in the middle of an agent's transaction: that one is gone with its process. */
function committedIn(db: Database.Database): Buffer {
  if (db.inTransaction) db.exec("ROLLBACK");
  return db.serialize();
}

/** A database in memory has no log. */
function bytesInMemory(bytes: Uint8Array): Buffer {
  const copy = Buffer.from(bytes);
  copy[18] = 1;
  copy[19] = 1;
  return copy;
}

function newIndex(): IndexState {
  return { rows: new Map(), doomed: new Set(), lost: new Map() };
}

function copyIndex({ rows, doomed, lost }: IndexState): IndexState {
  return { rows: new Map(rows), doomed: new Set(doomed), lost: new Map(lost) };
}

/** What a sync that fails says. */
export function syncError(): PerdureError {
  return new PerdureError("sql_failed", "EIO: i/o error, fdatasync");
}
