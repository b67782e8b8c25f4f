import type { AgentIndex, LostChild } from "../../storage.ts";
import type { AgentEntry, Claim } from "./engine.ts";

/** What became known, and is to be stored. Each is done behind all rows that were written before it. */
interface IndexOrders {
  settle(id: string, alarm: number | null): void;
  doom(ids: readonly string[], lost: LostChild | undefined): void;
  told(child: string): void;
}

/**
 * What is known of the agents that this node owns: loaded with each claim, since a tree is owned as a whole. So its questions are
 * answered at once. Of agents elsewhere it knows nothing.
 */
export class ClusterIndex implements AgentIndex {
  readonly #orders: IndexOrders;
  readonly #agents = new Map<string, AgentEntry>();
  /** Parents by child. */
  readonly #lost = new Map<string, string>();

  constructor(orders: IndexOrders) {
    this.#orders = orders;
  }

  took({ agents, lost }: Claim): void {
    for (const entry of agents) this.#agents.set(entry.id, entry);
    for (const { child, parent } of lost) this.#lost.set(child, parent);
  }

  /** A root and all below it are not this node's any more. */
  forget(root: string): void {
    for (const id of this.tree(root)) this.#agents.delete(id);
    for (const id of this.#lost.keys()) if (id.startsWith(`${root}/`)) this.#lost.delete(id);
  }

  awake(): string[] {
    return [];
  }

  due(now: number, limit: number): string[] {
    const due: AgentEntry[] = [];
    for (const entry of this.#agents.values()) if (entry.alarm !== null && entry.alarm <= now) due.push(entry);
    due.sort((a, b) => (a.alarm ?? 0) - (b.alarm ?? 0));
    return due.slice(0, limit).map(({ id }) => id);
  }

  nextDue(): number | null {
    let next: number | null = null;
    for (const { alarm } of this.#agents.values()) if (alarm !== null && (next === null || alarm < next)) next = alarm;
    return next;
  }

  has(id: string): boolean {
    return this.#agents.get(id)?.doomed === false;
  }

  list(after: string, limit: number): string[] {
    const ids = [...this.#agents.values()].filter(({ id, doomed }) => id > after && !doomed).map(({ id }) => id);
    return ids.sort().slice(0, limit);
  }

  tree(id: string): string[] {
    return [...this.#agents.keys()].filter((key) => key === id || key.startsWith(`${id}/`)).sort();
  }

  /** Nothing is stored: its first rows say it, and until they are in, its alarm does. */
  wake(id: string): void {
    this.#agents.set(id, { id, awake: true, alarm: null, doomed: false });
  }

  settle(id: string, alarm: number | null): void {
    if (!this.#agents.has(id)) return;
    this.#agents.set(id, { id, awake: false, alarm, doomed: false });
    this.#orders.settle(id, alarm);
  }

  doom(ids: readonly string[], lost?: LostChild): void {
    for (const id of ids)
      if (this.#agents.has(id)) this.#agents.set(id, { id, awake: false, alarm: null, doomed: true });
    if (lost !== undefined) this.#lost.set(lost.child, lost.parent);
    this.#orders.doom(ids, lost);
  }

  doomed(): string[] {
    return [];
  }

  isDoomed(id: string): boolean {
    return this.#agents.get(id)?.doomed === true;
  }

  removed(id: string): void {
    this.#agents.delete(id);
  }

  lost(parent: string): string[] {
    return [...this.#lost].filter(([, of]) => of === parent).map(([child]) => child);
  }

  told(child: string): void {
    this.#lost.delete(child);
    this.#orders.told(child);
  }
}
