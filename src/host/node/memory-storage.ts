import type { Blobs } from "../../port.ts";
import type { AgentIndex, LostChild, Storage } from "../storage.ts";
import { MemoryAgentFile } from "./agent-file.ts";
import { AgentDatabase } from "./database.ts";
import { memoryBlobs } from "./disk-blobs.ts";
import { indexed } from "./disk-storage.ts";
import { HandlePool } from "./handle-pool.ts";
import { openEmpty, templateBytes } from "./open-sqlite.ts";

/** Keeps everything in memory, until the process ends. A second host on the same value finds it, as after a restart. */
export function memoryStorage(options: { openDatabases?: number; onCommit?: (id: string) => void } = {}): Storage {
  const template = templateBytes();
  const files = new Map<string, MemoryAgentFile>();
  const blobs = new Map<string, Blobs>();
  const index = new MemoryIndex();
  const limit = options.openDatabases ?? Number.POSITIVE_INFINITY;
  let pool = openPool();
  function openPool(): HandlePool {
    const fresh = new HandlePool(limit, openEmpty());
    fresh.onCommit = options.onCommit;
    return fresh;
  }
  return {
    index,
    open(id, listener) {
      const file = files.get(id) ?? new MemoryAgentFile(template);
      const own = blobs.get(id) ?? memoryBlobs();
      const events = indexed(index, id, listener);
      const firstWrite = () => {
        events.firstWrite();
        files.set(id, file);
      };
      // Kept from the first write on: who only looks leaves nothing behind.
      const put: Blobs["put"] = (bytes) => {
        blobs.set(id, own);
        return own.put(bytes);
      };
      return new AgentDatabase(id, file, pool, { ...own, put }, { ...events, firstWrite });
    },
    remove(id) {
      files.delete(id);
      blobs.delete(id);
      index.removed(id);
      return Promise.resolve();
    },
    durable: () => Promise.resolve(),
    close() {
      pool.closeAll();
      pool = openPool();
      return Promise.resolve();
    },
  };
}

class MemoryIndex implements AgentIndex {
  readonly #rows = new Map<string, { at: number | null; awake: boolean }>();
  readonly #doomed = new Set<string>();
  /** Parents by child. */
  readonly #lost = new Map<string, string>();

  awake(): string[] {
    return this.#ids((row) => row.awake);
  }

  due(now: number, limit: number): string[] {
    const due = [...this.#rows].filter(([, { at }]) => at !== null && at <= now);
    return due
      .sort(([, a], [, b]) => (a.at ?? 0) - (b.at ?? 0))
      .slice(0, limit)
      .map(([id]) => id);
  }

  nextDue(): number | null {
    let next: number | null = null;
    for (const { at } of this.#rows.values()) if (at !== null && (next === null || at < next)) next = at;
    return next;
  }

  has(id: string): boolean {
    return this.#rows.has(id);
  }

  list(after: string, limit: number): string[] {
    return this.#ids((_, id) => id > after).slice(0, limit);
  }

  tree(id: string): string[] {
    return this.#ids((_, key) => key === id || key.startsWith(`${id}/`));
  }

  wake(id: string): void {
    this.#rows.set(id, { at: null, awake: true });
  }

  settle(id: string, at: number | null): void {
    this.#rows.set(id, { at, awake: false });
  }

  doom(ids: readonly string[], lost?: LostChild): void {
    for (const id of ids) {
      this.#rows.delete(id);
      this.#doomed.add(id);
    }
    if (lost !== undefined) this.#lost.set(lost.child, lost.parent);
  }

  doomed(): string[] {
    return [...this.#doomed];
  }

  isDoomed(id: string): boolean {
    return this.#doomed.has(id);
  }

  removed(id: string): void {
    this.#doomed.delete(id);
  }

  lost(parent: string): string[] {
    return [...this.#lost].filter(([, of]) => of === parent).map(([child]) => child);
  }

  told(child: string): void {
    this.#lost.delete(child);
  }

  durable(): Promise<void> {
    return Promise.resolve();
  }

  #ids(keep: (row: { awake: boolean }, id: string) => boolean): string[] {
    return [...this.#rows]
      .filter(([id, row]) => keep(row, id))
      .map(([id]) => id)
      .sort();
  }
}
