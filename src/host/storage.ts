import type { Blobs, Sql } from "../port.ts";
import type { TxListener } from "./tx-listener.ts";

/** One agent's rows, open for one life. */
export interface AgentStore extends Sql {
  readonly inTransaction: boolean;
  /** Number of the last commit that output has to wait for. */
  readonly needed: number;
  /** Number of the last commit that survives the loss of power. */
  readonly synced: number;
  readonly blobs: Blobs;
  /** Whether anything was written in this life. */
  readonly wrote: boolean;
  durable(): Promise<void>;
  /** Lets go of files and memory; the next life opens it anew. */
  release(): void;
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
}

/** Where a host keeps everything. */
export interface Storage {
  readonly index: AgentIndex;
  open(id: string, listener: TxListener): AgentStore;
  /** Deletes one agent's rows, files and index entry. The agent has no life at that moment. */
  remove(id: string): Promise<void>;
  /** Resolves when what the index was told survives. */
  durable(): Promise<void>;
  close(): Promise<void>;
}
