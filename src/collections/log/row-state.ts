import type { AppliedChange, ConfirmedRow, RowTable } from "./row-log.ts";
import type { RowChange, RowCondition, RowWrite } from "../../wire/row-frames.ts";

type Listener = (changes: readonly AppliedChange[], reset: boolean) => void;

/** One collection's rows, with the versions of those that are gone. */
class Table implements RowTable {
  readonly kept = new Map<string, ConfirmedRow>();
  /** Versions of deleted rows: an old condition must not hold again when a row comes back. */
  readonly gone = new Map<string, { version: number; order: number }>();
  readonly listeners = new Set<Listener>();
  readonly #whenReady: (() => Promise<void>) | undefined;

  constructor(whenReady: (() => Promise<void>) | undefined) {
    this.#whenReady = whenReady;
  }

  get ready(): Promise<void> | undefined {
    return this.#whenReady?.();
  }

  get(key: string): ConfirmedRow | undefined {
    return this.kept.get(key);
  }

  rows(): Iterable<ConfirmedRow> {
    return this.kept.values();
  }

  get size(): number {
    return this.kept.size;
  }

  version(key: string): number {
    return (this.kept.get(key) ?? this.gone.get(key))?.version ?? 0;
  }

  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** What applying one write did. */
interface Applied {
  readonly changes: readonly AppliedChange[];
  /** Why nothing was changed. */
  readonly refused?: string;
}

/**
 * The rows that a log adds up to. The same writes in the same order give the same rows, versions and refusals in every process:
 * that is how a condition decides between writers that never met.
 */
export class RowState {
  readonly #tables = new Map<string, Table>();
  #nextOrder = 1;
  readonly #onError: (error: unknown) => void;
  readonly #whenReady: ((table: string) => Promise<void>) | undefined;

  /** @param whenReady for tables that are read one by one: resolves when the rows of one are here. */
  constructor(onError: (error: unknown) => void, whenReady?: (table: string) => Promise<void>) {
    this.#onError = onError;
    this.#whenReady = whenReady;
  }

  table(name: string): RowTable {
    return this.#tableOf(name);
  }

  /** Applies a write at its place in the order, or says why it does not apply. Listeners are not called yet. */
  apply(write: RowWrite): Applied {
    const refused = this.#refusal(write);
    if (refused !== undefined) return { changes: [], refused };
    return { changes: write.changes.map((change) => this.#change(change, write.txid)) };
  }

  /** Takes over a row as another place has confirmed it (a server that keeps versions itself). */
  adopt(change: AppliedChange): AppliedChange {
    const table = this.#tableOf(change.table);
    const before = table.kept.get(change.key);
    if (change.operation === "delete") {
      table.kept.delete(change.key);
      table.gone.set(change.key, { version: change.version, order: change.order });
      return { ...change, value: before?.value ?? change.value };
    }
    const { key, value, version, order } = change;
    table.kept.set(key, { key, value, version, order });
    table.gone.delete(key);
    return { ...change, operation: before === undefined ? "insert" : "update" };
  }

  /** Forgets the rows of a table; its listeners are to be told with `emitTable(…, true)`. */
  clear(name: string): void {
    const table = this.#tableOf(name);
    table.kept.clear();
    table.gone.clear();
  }

  /** Tells the listeners of each table what was applied. */
  emit(changes: readonly AppliedChange[]): void {
    for (const [name, list] of Map.groupBy(changes, ({ table }) => table)) this.emitTable(name, list, false);
  }

  /** Tells the listeners of one table. */
  emitTable(name: string, changes: readonly AppliedChange[], reset: boolean): void {
    for (const listener of this.#tableOf(name).listeners) {
      try {
        listener(changes, reset);
      } catch (error) {
        this.#onError(error);
      }
    }
  }

  #refusal(write: RowWrite): string | undefined {
    for (const condition of write.when ?? []) {
      const version = this.#tableOf(condition.table).version(condition.key);
      if (version !== condition.version) return refusedCondition(condition, version);
    }
    // Rows of this write count as there or gone for the changes behind them.
    const within = new Map<string, boolean>();
    for (const { table, key, operation } of write.changes) {
      const name = JSON.stringify([table, key]);
      const there = within.get(name) ?? this.#tableOf(table).kept.has(key);
      if (operation === "insert" && there) return `there is a row "${key}" in "${table}" already`;
      if ((operation === "update" || operation === "delete") && !there) return `there is no row "${key}" in "${table}"`;
      within.set(name, operation !== "delete");
    }
    return undefined;
  }

  #change(change: RowChange, txid: string | undefined): AppliedChange {
    const { table: name, key, operation } = change;
    const table = this.#tableOf(name);
    const before = table.kept.get(key);
    const version = table.version(key) + 1;
    if (operation === "delete") {
      const order = before?.order ?? 0;
      table.kept.delete(key);
      table.gone.set(key, { version, order });
      return { table: name, key, operation, value: before?.value ?? {}, version, order, txid };
    }
    const value = change.value ?? {};
    const order = before?.order ?? this.#nextOrder++;
    table.kept.set(key, { key, value, version, order });
    table.gone.delete(key);
    return { table: name, key, operation: before === undefined ? "insert" : "update", value, version, order, txid };
  }

  #tableOf(name: string): Table {
    let table = this.#tables.get(name);
    if (table === undefined) {
      const whenReady = this.#whenReady;
      table = new Table(whenReady && (() => whenReady(name)));
      this.#tables.set(name, table);
    }
    return table;
  }
}

function refusedCondition({ table, key, version }: RowCondition, found: number): string {
  return `the row "${key}" of "${table}" is at version ${found}, not ${version}`;
}
