import type { Identity } from "../base/identity.ts";
import type { AgentEvent } from "../base/event.ts";
import type { AgentPath, Sql } from "../port.ts";

/** Where the door is, over HTTP and by the socket alike. */
export const ADMIN_PREFIX = "/_perdure/";
/** What an operator is called, in their own words. */
export const OPERATOR_HEADER = "perdure-operator";

/** What the operators' door asks of a host, or of a directory that no host has open. */
export interface AdminHouse {
  /** What is known of it: where it is, what runs it, how much it holds. */
  describe(): object;
  /** Ids of agents behind one, in their order. */
  list(after: string, limit: number): string[];
  has(id: string): boolean;
  /** Whether the agent is in memory. */
  isAwake(id: string): boolean;
  /** Reads an agent's rows as they are now, and wakes nobody. `read` must be quick; what it writes is refused. */
  look<T>(id: string, read: (rows: Sql) => T): T;
  /** Lets others have a turn between two agents. */
  breathe(): Promise<void>;
  /** Deletes an agent with all below it. Resolves when that is durable. */
  remove(path: AgentPath): Promise<void>;
  readonly audit: AuditBook | undefined;
  /** Undefined where nothing is in files. */
  readonly copies: AgentCopies | undefined;
  /** What only a running host can do: undefined in a directory at rest. */
  readonly running: RunningHouse | undefined;
}

/** A host that runs: its agents' code is there. */
export interface RunningHouse {
  /** Calls a method of an agent, waking it. Settles when what it wrote is durable. */
  call(path: AgentPath, method: string, args: readonly unknown[]): Promise<unknown>;
  /** Has an agent answer a request, waking it. The host's own hooks are not asked. */
  request(path: AgentPath, request: Request, rest: string, identity: Identity): Promise<Response>;
  /** Calls `listener` for each event of any agent, until the returned function is called. */
  follow(listener: (event: AgentEvent) => void): () => void;
}

/** Something that an operator did, or began to do. */
export interface AuditRow {
  readonly seq: number;
  readonly at: number;
  /** The way in: `socket`, `http` or `files`. */
  readonly via: string;
  /** What whoever did it is called. Over HTTP it is their word for it. */
  readonly who: string;
  readonly act: string;
  readonly agent: string | null;
  readonly detail: string | null;
  /** `ok`, or the code of what went wrong; null: under way, or cut off. */
  readonly outcome: string | null;
}

/** Where a host notes what operators do. */
export interface AuditBook {
  /** Notes, before it is done, what is about to be done. @returns the number of the note */
  note(row: Omit<AuditRow, "seq" | "outcome">): number;
  settle(seq: number, outcome: string): void;
  /** The newest first. */
  list(limit: number): AuditRow[];
}

/** What is known of an agent as it was copied. */
export interface CopyAbout {
  readonly id: string;
  /** Its life had not ended in order: whoever has its rows carries on what it did. */
  readonly awake: boolean;
  /** When it is due, if it is asleep. */
  readonly due: number | null;
  /** How much was erased from the directory by then, as a number that only grows. */
  readonly erased: number;
  /** As {@link AgentCopies.versionOf} says. */
  readonly version: string | null;
  /** Its files, by their SHA-256. */
  readonly blobs: readonly string[];
}

/** An agent's rows as they were at one moment, as the bytes of a SQLite database. */
export interface AgentCopy {
  readonly about: CopyAbout;
  readonly bytes: number;
  readonly rows: ReadableStream<Uint8Array>;
}

/** Whose rows are taken in, and what is known of them. */
export interface Newcomer {
  /** What it is called here. There must be no such agent. */
  readonly id: string;
  /** What it was called where it was copied. */
  readonly from: string;
  /** Of its {@link CopyAbout}; what was erased here since is erased from it too. Null: nothing is. */
  readonly erased: number | null;
  /** It is taken in though all of it was deleted here since: by mistake. What was erased from it by itself stays erased. */
  readonly evenDeleted: boolean;
  /** Whether it goes on at once, or at the next start, with what it was doing. */
  readonly awake: boolean;
  /** When it wakes otherwise; null: when somebody uses it. */
  readonly due: number | null;
}

/** Whole agents, out of a directory and into it. */
export interface AgentCopies {
  /** The same as long as the rows are; null: they are in use, or were until a moment ago, so that nobody can tell. */
  versionOf(id: string): string | null;
  /** Copies an agent, and wakes nobody. What is written meanwhile may be in the copy. Rejects with `not_found`, `conflict`. */
  copy(id: string): Promise<AgentCopy>;
  /** One of its files. Undefined: it is gone. */
  blob(id: string, name: string): Promise<ReadableStream<Uint8Array> | undefined>;
  /** Takes in a file for an agent that is not here yet. Rejects with `bad_input` if the bytes have another SHA-256. */
  putBlob(id: string, name: string, bytes: ReadableStream<Uint8Array>): Promise<void>;
  /** The schema of an agent's rows as they are, which nothing brings up to date, and the newest there is. */
  schemaOf(id: string): { readonly schema: number; readonly newest: number };
  /** Whether all of an agent was deleted here after a copy of it was made. @param erased of its {@link CopyAbout} */
  isErased(id: string, erased: number): boolean;
  /**
   * Takes in rows, after their files. They are checked first. Rejects with `conflict` when the agent is here already, or all of it
   * was erased; `database_corrupt`, `database_newer`.
   */
  adopt(newcomer: Newcomer, rows: ReadableStream<Uint8Array>): Promise<void>;
  /** The host's own database: its audit, and what was erased. */
  host(): Uint8Array;
  /** What is wrong with one agent's files and rows, in words; looks at them all, so it takes a while. */
  flaws(id: string): Promise<string[]>;
  /** Files that belong to no agent, relative to the directory. */
  orphans(): string[];
  /** Notes that a backup is whole. */
  backedUp(at: number): void;
  /** When the last one began; null: there is none. */
  lastBackup(): number | null;
}
