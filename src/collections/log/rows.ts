import { PerdureError } from "../../base/error.ts";
import { logUtilsOf } from "./collection-options.ts";
import type { RowLog, RowValue } from "./row-log.ts";
import type { RowChange, RowCondition, RowProducer } from "../../wire/row-frames.ts";
import { namedIssues, rowBySchema } from "./schema.ts";

/** What a write to any collection of TanStack DB returns. */
interface Persisting {
  readonly isPersisted: { readonly promise: Promise<unknown> };
}

/**
 * A TanStack DB collection, as far as this module uses it. Only collections on a log (`logCollectionOptions`,
 * `durableStreamCollectionOptions`, `perdureCollectionOptions`) take conditional writes.
 */
export interface RowCollection<TRow extends object> {
  readonly id: string;
  readonly utils: { [name: string]: unknown };
  /** What the row's type is read from: here it has none of the fields that TanStack DB adds or leaves open. */
  readonly config: { readonly getKey: (row: TRow) => string | number };
  readonly toArray: NoInfer<TRow>[];
  get(key: string): NoInfer<TRow> | undefined;
  insert(row: NoInfer<TRow>): Persisting;
  /** `(key, change)`; collections differ in how they type the draft that `change` is given. It is the row. */
  update(...args: never[]): Persisting;
  delete(key: string): Persisting;
  preload(): Promise<void>;
  subscribeChanges(listener: () => void): { unsubscribe(): void };
}

/** How a write is to be made. Ignored by collections that are not on a log: those have one writer. */
export interface RowOptions {
  readonly when?: readonly RowCondition[];
  readonly producer?: RowProducer;
  readonly txid?: string;
}

/** Rows as they were confirmed, and writes that are awaited: what everything in this module reads and writes with. */
export interface Rows<TRow extends object> {
  /** The log behind the collection; undefined: writes cannot be conditional. */
  readonly log: RowLog | undefined;
  /** The row as it was confirmed; on a log, local optimistic edits do not show. */
  get(key: string): TRow | undefined;
  all(): TRow[];
  /** A condition that holds as long as the row stays as it is now. Undefined without a log. */
  unchanged(key: string): RowCondition | undefined;
  /** Resolves when the row is durable and can be read. False: refused (it is there already, or a condition failed). */
  insert(row: TRow, options?: RowOptions): Promise<boolean>;
  /** Many rows in one write. */
  insertAll(rows: readonly TRow[], options?: RowOptions): Promise<boolean>;
  /**
   * Reads, changes, writes; on a log it starts over if somebody else wrote in between, so no change is lost. `change` may run
   * more than once; return false, with nothing changed, to leave the row as it is.
   * @returns false when there is no such row, a condition failed, or `change` said no.
   */
  update(key: string, change: (draft: TRow) => unknown, options?: RowOptions): Promise<boolean>;
  delete(key: string, options?: RowOptions): Promise<boolean>;
  /** Many rows in one write. False: refused, because one of them is not there or a condition failed. */
  deleteAll(keys: readonly string[], options?: RowOptions): Promise<boolean>;
  /** Called after rows have changed. Returns its end. */
  subscribe(listener: () => void): () => void;
  /** Resolves when the rows that were there are here. */
  ready(): Promise<void>;
}

/** How often an update starts again because somebody else was quicker. */
const UPDATE_TRIES = 50;

/** The rows of a collection. On a log it reads confirmed rows and writes past TanStack DB's optimism, which would
 * hold back everybody else's rows while it waits; elsewhere it writes optimistically and waits. */
export function rowsOf<TRow extends object>(collection: RowCollection<TRow>): Rows<TRow> {
  const utils = logUtilsOf(collection);
  return utils === undefined ? plainRows(collection) : logRows(collection, utils);
}

function logRows<TRow extends object>(
  collection: RowCollection<TRow>,
  { log, tableName: table, confirmed, show, admit }: NonNullable<ReturnType<typeof logUtilsOf>>,
): Rows<TRow> {
  // The collection's schema is what says that the rows of the log are its rows.
  const shown = (row: { value: RowValue; order: number }) => show(row) as TRow;
  const write = async (changes: RowChange[], options: RowOptions = {}) =>
    changes.length === 0 || (await log.write({ changes, ...options })).applied;
  const insertAll: Rows<TRow>["insertAll"] = async (rows, options) => {
    const insertion = (row: TRow): RowChange => {
      const value = admit(row);
      // The row's own key, or one that the schema has filled in.
      return { table, key: keyOf(collection, value as TRow), operation: "insert", value };
    };
    return write(rows.map(insertion), options);
  };
  const deleteAll: Rows<TRow>["deleteAll"] = (keys, options) => {
    const deletions = keys.map((key): RowChange => ({ table, key, operation: "delete" }));
    return write(deletions, options);
  };
  const unchanged = (key: string): RowCondition => ({ table, key, version: confirmed.version(key) });
  return {
    log,
    get: (key) => {
      const row = confirmed.get(key);
      return row === undefined ? undefined : shown(row);
    },
    all: () => [...confirmed.rows()].toSorted((a, b) => a.order - b.order).map(shown),
    unchanged,
    insert: (row, options) => insertAll([row], options),
    insertAll,
    update: inTurn(log, table, async (key, change, options = {}) => {
      for (let tries = 0; tries < UPDATE_TRIES; tries++) {
        const row = confirmed.get(key);
        if (row === undefined) return false;
        const mine = unchanged(key);
        const before = shown(row);
        const draft = structuredClone(before);
        if (change(draft) === false) {
          requireUntouched(textOf(before), draft);
          return false;
        }
        const changes: RowChange[] = [{ table, key, operation: "update", value: admit(draft, before) }];
        const receipt = await log.write({
          changes,
          ...options,
          // Each try is a write of its own: under the name of a refused one it would be refused again, unread.
          ...(options.txid === undefined || tries === 0 ? {} : { txid: `${options.txid}~${tries}` }),
          when: [...(options.when ?? []), mine],
        });
        if (receipt.applied) return true;
        // Only its own condition is worth another try; or the refusal of a former life under the same name.
        if (confirmed.version(key) === mine.version && options.txid === undefined) return false;
        // A table that nobody here has read yet would seem to have no rows.
        for (const one of options.when ?? []) await log.table(one.table).ready?.catch(() => undefined);
        if (options.when?.some((one) => log.table(one.table).version(one.key) !== one.version) === true) return false;
      }
      throw new PerdureError("conflict", `The row "${key}" of "${table}" changes too often to be updated.`);
    }),
    delete: (key, options) => deleteAll([key], options),
    deleteAll,
    subscribe: (listener) => confirmed.subscribe(() => listener()),
    ready: () => confirmed.ready ?? log.ready,
  };
}

type Update<TRow extends object> = Rows<TRow>["update"];

/** The last update of each row that is under way here. */
const underWay = new WeakMap<RowLog, Map<string, Promise<unknown>>>();

/** Updates of one row wait for each other in this process: they could only refuse each other. */
function inTurn<TRow extends object>(log: RowLog, table: string, update: Update<TRow>): Update<TRow> {
  let turns = underWay.get(log);
  if (turns === undefined) underWay.set(log, (turns = new Map()));
  const last = turns;
  return async (key, change, options) => {
    const name = JSON.stringify([table, key]);
    const before = last.get(name);
    const turn = before === undefined ? update(key, change, options) : before.then(() => update(key, change, options));
    // Whoever is next waits for the end, whatever it is.
    const over = turn.then(
      () => undefined,
      () => undefined,
    );
    last.set(name, over);
    try {
      return await turn;
    } finally {
      if (last.get(name) === over) last.delete(name);
    }
  };
}

/** Leaves an update before anything is written. */
const UNWANTED = new Error("The row is to stay as it is.");

function plainRows<TRow extends object>(collection: RowCollection<TRow>): Rows<TRow> {
  const persist = async (transaction: Persisting) => {
    await transaction.isPersisted.promise;
    return true;
  };
  const insert = (row: TRow): Persisting => {
    try {
      return collection.insert(row);
    } catch (error) {
      throw namedIssues(error, { table: collection.id, key: () => keyOf(collection, row) });
    }
  };
  const updateRow = collection.update.bind(collection) as (key: string, change: (draft: TRow) => void) => Persisting;
  return {
    log: undefined,
    get: (key) => collection.get(key),
    all: () => collection.toArray,
    unchanged: () => undefined,
    insert: async (row) => (collection.get(keyOf(collection, row)) === undefined ? persist(insert(row)) : false),
    insertAll: async (rows) => {
      for (const row of rows) await persist(insert(row));
      return true;
    },
    update: async (key, change) => {
      if (collection.get(key) === undefined) return false;
      let transaction: Persisting;
      try {
        transaction = updateRow(key, (draft) => {
          const before = textOf(draft);
          if (change(draft) !== false) return;
          requireUntouched(before, draft);
          throw UNWANTED;
        });
      } catch (error) {
        if (error === UNWANTED) return false;
        throw namedIssues(error, { table: collection.id, key: () => key });
      }
      return persist(transaction);
    },
    delete: async (key) => (collection.get(key) === undefined ? false : persist(collection.delete(key))),
    deleteAll: async (keys) => {
      if (keys.some((key) => collection.get(key) === undefined)) return false;
      for (const key of keys) await persist(collection.delete(key));
      return true;
    },
    subscribe: (listener) => {
      const subscription = collection.subscribeChanges(listener);
      return () => subscription.unsubscribe();
    },
    ready: () => collection.preload(),
  };
}

/** A new row as its collection will show it: as its schema makes it. @throws as an insert of it would. */
export function asInserted<TRow extends object>(collection: RowCollection<TRow>, row: TRow): TRow {
  const utils = logUtilsOf(collection);
  // The collection's schema is what says that its rows are such rows.
  if (utils !== undefined) return utils.admit(row) as TRow;
  const place = { table: collection.id, key: () => keyOf(collection, row) };
  // There TanStack DB writes, and keeps nothing that the schema drops.
  return rowBySchema((collection.config as { schema?: unknown }).schema, place, row, undefined, new Set()) as TRow;
}

/** The key of a row of a collection. @throws PerdureError `bad_input` when it has none. */
export function keyOf<TRow extends object>(collection: Pick<RowCollection<TRow>, "config">, row: TRow): string {
  const key: unknown = collection.config.getKey(row);
  if (typeof key === "string" || typeof key === "number") return String(key);
  throw new PerdureError("bad_input", `A row has no key: "getKey" returned ${String(key)} for ${shortened(row)}.`);
}

const SHOWN_CHARS = 120;

function shortened(row: object): string {
  return textOf(row)?.slice(0, SHOWN_CHARS) ?? "a row that is no JSON";
}

function textOf(row: object): string | undefined {
  try {
    return JSON.stringify(row);
  } catch {
    return undefined;
  }
}

/** An arrow such as `(row) => (row.on = false)` says false without meaning it. @throws PerdureError `bad_input` */
function requireUntouched(before: string | undefined, draft: object): void {
  if (before === textOf(draft)) return;
  throw new PerdureError(
    "bad_input",
    "The change of a row returned false, which leaves the row as it is, but it had already changed the row. To keep the change, return nothing: (row) => { row.on = false; }",
  );
}

/** How many rows are deleted in one write. */
const DELETED_TOGETHER = 500;

/**
 * Deletes rows in key order, many per write; rows already deleted are fine.
 * @returns false when a condition of `options` did not hold; some may be deleted then.
 */
export async function deleteRows<TRow extends object>(
  rows: Rows<TRow>,
  keys: readonly string[],
  options: RowOptions = {},
): Promise<boolean> {
  let left = [...keys];
  while (left.length > 0) {
    const batch = left.slice(0, DELETED_TOGETHER);
    if (await rows.deleteAll(batch, options)) left = left.slice(batch.length);
    else if (batch.every((key) => rows.get(key) !== undefined)) return false;
    else left = left.filter((key) => rows.get(key) !== undefined);
  }
  return true;
}
