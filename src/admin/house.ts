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
