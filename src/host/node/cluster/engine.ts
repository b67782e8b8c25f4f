/** Rows and bytes of one agent, as a cluster's database has them. */
export interface StoredAgent {
  /** Number of its last delta. */
  readonly seq: number;
  /** What its file is before the first delta: of a number, in packed parts, or a template's bytes. */
  readonly base: readonly Uint8Array[] | { readonly template: Uint8Array };
  /** All later deltas, oldest first. */
  readonly deltas: readonly Uint8Array[];
}

/** What is known of an agent besides its rows: the same as in an index on a disk. */
export interface AgentEntry {
  readonly id: string;
  readonly awake: boolean;
  readonly alarm: number | null;
  readonly doomed: boolean;
}

/** A root that is this node's now: nobody else can write it until it is given back, or taken. */
export interface Claim {
  readonly epoch: number;
  /** Of the whole tree. */
  readonly agents: readonly AgentEntry[];
  /** Deleted children whose parents have not heard of it. */
  readonly lost: readonly { readonly child: string; readonly parent: string }[];
}

/** One delta on its way. */
export interface Append {
  readonly root: string;
  readonly epoch: number;
  readonly id: string;
  readonly seq: number;
  /** Which template the agent's first delta is about. */
  readonly template: string;
  readonly pages: Uint8Array;
}

/** Changes of what is known of agents; of one root, under one epoch. */
export interface Settlement {
  readonly root: string;
  readonly epoch: number;
  /** Lives that ended, and when the next is due. */
  readonly asleep: readonly { readonly id: string; readonly alarm: number | null }[];
}

/** What a database does for a cluster. All that changes an agent is refused unless the epoch is the root's newest. */
export interface Engine {
  /** Whether what was sent last came through, and how long it took. */
  readonly health: { readonly ok: boolean; readonly roundTripMs: number };
  /** Makes the tables if need be, and this node known. @throws PerdureError `bad_config`, `database_newer` */
  join(node: string, address: string, ttlMs: number): Promise<readonly string[]>;
  /** @returns false: another node counts this one as dead */
  renew(node: string, ttlMs: number): Promise<boolean>;
  leave(node: string): Promise<void>;
  /** Keeps the bytes of new agents, under their hash. */
  keepTemplate(hash: string, bytes: Uint8Array): Promise<void>;
  /** @returns who has it, when somebody else does and lives */
  claim(root: string, node: string): Promise<Claim | { readonly owner: string }>;
  /** Gives a root back. */
  release(root: string, epoch: number): Promise<void>;
  load(id: string): Promise<StoredAgent | undefined>;
  /** One statement for all of them. @returns those that are in, by their place; rejects when nobody knows which are */
  append(items: readonly Append[]): Promise<ReadonlySet<number>>;
  /** @returns whether the epoch still counts */
  settle(settlement: Settlement): Promise<boolean>;
  /** Replaces a base and the deltas up to `seq` by another base. @returns whether the epoch still counts */
  fold(item: Omit<Append, "pages" | "template">, parts: AsyncIterable<Uint8Array>): Promise<boolean>;
  doom(root: string, epoch: number, ids: readonly string[], lost?: { child: string; parent: string }): Promise<boolean>;
  told(root: string, epoch: number, child: string): Promise<boolean>;
  remove(root: string, epoch: number, id: string): Promise<boolean>;
  /** Agents that nobody has: due, cut off, or to be deleted. */
  due(now: number, limit: number): Promise<string[]>;
  exists(id: string): Promise<boolean>;
  putBlob(root: string, epoch: number, id: string, name: string, bytes: Uint8Array): Promise<boolean>;
  getBlob(id: string, name: string): Promise<Uint8Array | undefined>;
  deleteBlob(root: string, epoch: number, id: string, name: string): Promise<boolean>;
  close(): Promise<void>;
}
