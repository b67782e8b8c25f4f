// The host's index of agents in memory, with what of it survives the loss of power.
import type { AgentIndex, LostChild } from "../../src/host/storage.ts";
import type { DiskLuck } from "./disk.ts";

interface IndexRow {
  readonly at: number | null;
  readonly awake: boolean;
}

/** What the index says. */
export interface IndexState {
  readonly rows: Map<string, IndexRow>;
  readonly doomed: Set<string>;
  /** Parents by child. */
  readonly lost: Map<string, string>;
}

/** Where the index is kept. */
interface IndexPlatter {
  readonly committed: IndexState;
  synced: IndexState;
  readonly flying: Set<IndexState>;
}

export class HostIndex implements AgentIndex {
  readonly #platter: IndexPlatter;
  readonly #luck: DiskLuck;
  #written = 0;
  #synced = 0;
  #syncing: Promise<void> | undefined;

  constructor(platter: IndexPlatter, luck: DiskLuck) {
    this.#platter = platter;
    this.#luck = luck;
  }

  awake(): string[] {
    return this.#ids((row) => row.awake);
  }

  due(now: number, limit: number): string[] {
    const due = [...this.#state.rows].filter(([, { at }]) => at !== null && at <= now);
    return due
      .sort(([a, x], [b, y]) => (x.at ?? 0) - (y.at ?? 0) || (a < b ? -1 : 1))
      .slice(0, limit)
      .map(([id]) => id);
  }

  nextDue(): number | null {
    const due = [...this.#state.rows.values()].flatMap(({ at }) => (at === null ? [] : [at]));
    return due.length === 0 ? null : Math.min(...due);
  }

  has(id: string): boolean {
    return this.#state.rows.has(id);
  }

  list(after: string, limit: number): string[] {
    return this.#ids((_, id) => id > after).slice(0, limit);
  }

  tree(id: string): string[] {
    return this.#ids((_, key) => key === id || key.startsWith(`${id}/`));
  }

  wake(id: string): void {
    this.#write(({ rows }) => rows.set(id, { at: null, awake: true }));
  }

  settle(id: string, at: number | null): void {
    this.#write(({ rows }) => rows.set(id, { at, awake: false }));
  }

  doom(ids: readonly string[], lost?: LostChild): void {
    this.#write((state) => {
      for (const id of ids) {
        state.rows.delete(id);
        state.doomed.add(id);
      }
      if (lost !== undefined) state.lost.set(lost.child, lost.parent);
    });
  }

  doomed(): string[] {
    return [...this.#state.doomed];
  }

  isDoomed(id: string): boolean {
    return this.#state.doomed.has(id);
  }

  removed(id: string): void {
    this.#write(({ doomed }) => doomed.delete(id));
  }

  lost(parent: string): string[] {
    return [...this.#state.lost].filter(([, of]) => of === parent).map(([child]) => child);
  }

  told(child: string): void {
    this.#write(({ lost }) => lost.delete(child));
  }

  /** Resolves when what was written so far survives the loss of power. */
  async durable(): Promise<void> {
    const target = this.#written;
    while (this.#synced < target) {
      this.#syncing ??= this.#sync().finally(() => {
        this.#syncing = undefined;
      });
      await this.#syncing;
    }
  }

  async #sync(): Promise<void> {
    const upto = this.#written;
    const copy = this.#luck.alive && this.#luck.powerMayFail;
    const { rows, doomed, lost } = this.#state;
    const flight: IndexState = { rows: new Map(rows), doomed: new Set(doomed), lost: new Map(lost) };
    if (copy) this.#platter.flying.add(flight);
    try {
      await this.#luck.synced();
      if (copy && this.#luck.alive) this.#platter.synced = flight;
    } finally {
      this.#platter.flying.delete(flight);
    }
    this.#synced = Math.max(this.#synced, upto);
  }

  get #state(): IndexState {
    return this.#platter.committed;
  }

  /** The dead change nothing. */
  #write(change: (state: IndexState) => unknown): void {
    if (!this.#luck.alive) return;
    change(this.#state);
    this.#written++;
    this.#luck.committed("");
  }

  #ids(keep: (row: IndexRow, id: string) => boolean): string[] {
    return [...this.#state.rows]
      .filter(([id, row]) => keep(row, id))
      .map(([id]) => id)
      .sort();
  }
}
