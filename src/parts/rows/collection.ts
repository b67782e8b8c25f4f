import { PerdureError } from "../../base/error.ts";
import { countCollectionRows, listCollectionRows } from "../../store/collection-row.ts";
import { readStored } from "../../store/damaged.ts";
import type { JsonObject } from "../../wire/json.ts";
import type { RowChange, RowCondition } from "../../wire/row-frames.ts";
import type { CollectionRows, RowOutcome } from "./rows.ts";
import { keyOf, rulesFor } from "./rules.ts";

/** A row with what the agent keeps of it. */
export interface RowEntry<TRow extends object> {
  readonly key: string;
  readonly value: TRow;
  /** 1 with its first insert, one more with each change. */
  readonly version: number;
  /** Rows sorted by it are in the order of their inserts. */
  readonly order: number;
}

/**
 * One collection of this agent, for server code. Synchronous, part of the caller's transaction. Writes are checked by the schema,
 * committed when the method returns, and told to every follower. They throw PerdureError `read_only` inside a call from a
 * read-only connection, `bad_input` or `too_large` for a row that breaks a rule.
 */
export class AgentCollection<TRow extends object = JsonObject> {
  readonly name: string;
  readonly #rows: CollectionRows;

  /** @internal */
  constructor(rows: CollectionRows, name: string) {
    rulesFor(rows.collections, name);
    this.name = name;
    this.#rows = rows;
  }

  get(key: string): TRow | undefined {
    return this.entry(key)?.value;
  }

  entry(key: string): RowEntry<TRow> | undefined {
    const row = this.#rows.read(this.name, key);
    return row === undefined || row.value === null ? undefined : entryOf<TRow>({ ...row, value: row.value });
  }

  /** The row's version; of a deleted row its last one; 0 of one that never was. For conditions. */
  version(key: string): number {
    return this.#rows.read(this.name, key)?.version ?? 0;
  }

  /** The rows in the order of their inserts: all, or so many behind the one of this order. */
  list(options: { readonly after?: number; readonly limit?: number } = {}): TRow[] {
    return this.entries(options).map(({ value }) => value);
  }

  /** As {@link AgentCollection.list}, with versions. */
  entries(options: { readonly after?: number; readonly limit?: number } = {}): RowEntry<TRow>[] {
    if (this.#rows.life === "") return [];
    const { host } = this.#rows;
    return listCollectionRows(host, this.name, options).flatMap((row) => {
      const what = `the row ${JSON.stringify(row.key)} of ${JSON.stringify(this.name)}`;
      const value = readStored(host, row.value, what);
      // The app says what its rows are; its schema, if it has one, has checked each when it was written.
      return value === undefined
        ? []
        : [{ key: row.key, value: value as TRow, version: row.version, order: row.order }];
    });
  }

  get size(): number {
    return this.#rows.life === "" ? 0 : countCollectionRows(this.#rows.host, this.name);
  }

  /** Adds a row under its key. @throws PerdureError `conflict` when there is one. */
  insert(row: TRow, key: string = this.#keyOf(row)): void {
    const { refused } = this.#change({ key, operation: "insert", value: row });
    if (refused !== undefined) throw new PerdureError("conflict", `The row was not inserted: ${refused}.`);
  }

  /** Adds a row, or replaces the one that is there. */
  upsert(row: TRow, key: string = this.#keyOf(row)): void {
    this.#change({ key, operation: "upsert", value: row });
  }

  /** Replaces a row, or changes a copy of it and stores that. @returns false when there is no such row. */
  update(key: string, change: TRow | ((draft: TRow) => void)): boolean {
    if (typeof change !== "function") return this.#change({ key, operation: "update", value: change }).applied;
    const draft = this.get(key);
    if (draft === undefined) return false;
    change(draft);
    return this.#change({ key, operation: "update", value: draft }).applied;
  }

  /** @returns false when there is no such row. */
  delete(key: string): boolean {
    return this.#change({ key, operation: "delete" }).applied;
  }

  /** Several changes at once, if all conditions hold; they may be about any collection. */
  write(write: {
    readonly changes: readonly (Omit<RowChange, "table" | "value"> & { readonly value?: TRow })[];
    readonly when?: readonly RowCondition[];
  }): RowOutcome {
    const changes = write.changes.map((change) => ({ ...change, table: this.name }) as RowChange);
    return this.#rows.write({ ...write, changes }, "server");
  }

  #change(change: Omit<RowChange, "table" | "value"> & { readonly value?: TRow }): RowOutcome {
    return this.write({ changes: [change] });
  }

  #keyOf(row: TRow): string {
    return keyOf(rulesFor(this.#rows.collections, this.name), row);
  }
}

/** The app says what its rows are; its schema, if it has one, has checked each when it was written. */
function entryOf<TRow extends object>(row: {
  readonly key: string;
  readonly value: string;
  readonly version: number;
  readonly order: number;
}): RowEntry<TRow> {
  return { key: row.key, value: JSON.parse(row.value) as TRow, version: row.version, order: row.order };
}
