import type { AgentCopies, AuditBook } from "../admin/house.ts";
import type { Blobs, Sql } from "../port.ts";
import { PerdureError } from "../base/error.ts";

/** One agent's rows, open for one life. */
export interface AgentStore extends Sql {
  readonly inTransaction: boolean;
  /** Number of the last commit that output has to wait for. */
  readonly needed: number;
  /** Number of the last commit that survives the loss of power. */
  readonly synced: number;
  readonly blobs: Blobs;
  /** Nothing was ever written. */
  readonly blank: boolean;
  /** Whether anything was written in this life. */
  readonly wrote: boolean;
  durable(): Promise<void>;
  /** Rewrites the rows' files without anything that was deleted. Blocks while it does. @throws PerdureError */
  scrub?(): Promise<void>;
  /**
   * Lets go of files and memory, before it returns. Resolves when every commit is as safe as the gate wants it: what still waits
   * there leaves then, and is dropped when this rejects.
   */
  release(): Promise<void>;
}

/** Which agents exist and when they are due; kept by the host beside the agents' own rows. */
export interface AgentIndex {
  /** Agents whose last life did not end in order. */
  awake(): string[];
  due(now: number, limit: number): string[];
  nextDue(): number | null;
  has(id: string): boolean;
  list(after: string, limit: number): string[];
  /** `id` and every agent below it. */
  tree(id: string): string[];
  wake(id: string): void;
  settle(id: string, at: number | null): void;
  /** Strikes agents off, in one commit: they are only to be deleted. @param lost the child whose parent is to hear of it */
  doom(ids: readonly string[], lost?: LostChild): void;
  /** Agents whose rows and files are still to be deleted. */
  doomed(): string[];
  isDoomed(id: string): boolean;
  /** Children of `parent` that are gone, and that it has not heard of yet. */
  lost(parent: string): string[];
  /** The parent has struck the child off its own list. */
  told(child: string): void;
  /** A part of an agent's rows is deleted for good: no copy from before may bring it back. Resolves when that is durable. */
  erased?(id: string, scope: string): Promise<void>;
}

/** A deleted agent, and the one that lists it as a child. */
export interface LostChild {
  readonly child: string;
  readonly parent: string;
}

/** What one agent's place on a host asks of where its rows are. */
export interface AgentStorage {
  readonly index: Pick<AgentIndex, "settle" | "isDoomed" | "lost" | "told" | "erased">;
  /** Before {@link AgentStorage.open}: makes the rows this process's own, and brings them here. @throws PerdureError */
  claim?(id: string): Promise<void>;
  /** Whether an agent has ever stored something, here or elsewhere. Default: the index knows. */
  exists?(id: string): Promise<boolean>;
  open(id: string, listener: TxListener): AgentStore;
  /** Deletes the rows and files of a doomed agent, which has no life at that moment. Then it is doomed no more. */
  remove(id: string): Promise<void>;
}

/** What a storage that other processes share with this one has to say to its host. */
export interface Keeper {
  /** A tree of agents is this process's now: these were cut off, and those are to be deleted. */
  took(cutOff: readonly string[], doomed: readonly string[]): void;
  /** It is so no more: all lives in it end at once, and clients are sent away to come back. */
  lost(root: string, why: PerdureError): void;
  /** Whether something here still needs agents of this tree. */
  keeps(root: string): boolean;
  /** Whether this process has the code of an agent. */
  knows(id: string): boolean;
  /** Something went wrong that nobody waits for. */
  failed(error: unknown): void;
}

/** How a storage is doing, for health checks. */
export interface StorageHealth {
  readonly ok: boolean;
  readonly cluster?: {
    readonly node: string;
    readonly engineMs: number;
    readonly owned: number;
    readonly queueBytes: number;
  };
}

/** Where a host keeps everything. */
export interface Storage extends AgentStorage {
  readonly index: AgentIndex;
  /** What was found to be wrong as it was opened, and what was done about it; for the log. */
  readonly notices?: readonly string[];
  /** Begins to speak to the host, which asks for nothing before. */
  attach?(keeper: Keeper): void;
  /** Default: it is well. */
  readonly health?: StorageHealth;
  /** Where it is noted what operators do. Without it, nowhere. */
  readonly audit?: AuditBook;
  /** Whole agents as bytes, out and in. Without it there are no backups. */
  readonly copies?: AgentCopies;
  /** Resolves when what the index was told survives. */
  durable(): Promise<void>;
  close(): Promise<void>;
}

/** Told how transactions end, so that what was sent inside one shares its fate. */
export interface TxListener {
  /** Why nothing may be written now; undefined when it may. */
  refusal(): PerdureError | undefined;
  /** A (nested) transaction begins; the returned mark names this moment. */
  mark(): number;
  /** Everything since `mark` was undone. */
  rolledBack(mark: number): void;
  /** The outermost transaction is committed. */
  committed(): void;
  /** The first row ever of this agent is about to be stored. What it returns is durable before the row is. Must not throw. */
  created?(): Promise<void> | undefined;
}

/** Checks a transaction before it is committed, by what its work returned. @throws PerdureError `bad_state`, `agent_gone` */
export function checkTxEnd(result: unknown, label: string, isReleased: boolean): void {
  if (typeof result === "object" && result !== null && "then" in result && typeof result.then === "function") {
    throw new PerdureError(
      "bad_state",
      "The function given to tx() returned a promise. Await before or after it, never inside.",
    );
  }
  if (isReleased) throw new PerdureError("agent_gone", `${label} was ended inside a transaction, which was undone.`);
}
