import { type LogUtils, logUtilsOf } from "./collection-options.ts";
import type { ConfirmedRow, RowValue } from "./row-log.ts";
import { rowsOf, type RowCollection } from "./rows.ts";

/** Confirmed rows filed by name, kept current. On a log, updates cost what changed and lookups what they return. */
export interface RowIndex<TRow extends object> {
  /** The rows that are filed under these names, in the order of the log. */
  rows(...names: string[]): TRow[];
  /** Every name that has rows. */
  names(): Iterable<string>;
  /** Follows the collection no more. */
  stop(): void;
}

type NameOf<TRow> = (row: TRow) => string | undefined;

/**
 * Files rows by `nameOf`, which must depend on the row alone; undefined leaves one out. `onChange` gets the names whose rows
 * changed after each applied write, even if none. Listeners told of the write before it still read the old state here.
 */
export function indexRows<TRow extends object>(
  collection: RowCollection<TRow>,
  nameOf: NameOf<TRow>,
  onChange: (names: ReadonlySet<string>) => void = () => {},
): RowIndex<TRow> {
  const utils = logUtilsOf(collection);
  return utils === undefined ? groupRows(collection, nameOf, onChange) : fileRows(utils, nameOf, onChange);
}

/** A collection that is not on a log does not say which confirmed rows have changed: all of it is looked at again. */
function groupRows<TRow extends object>(
  collection: RowCollection<TRow>,
  nameOf: NameOf<TRow>,
  onChange: (names: ReadonlySet<string>) => void,
): RowIndex<TRow> {
  const rows = rowsOf(collection);
  let groups: Map<string | undefined, TRow[]> | undefined;
  const read = () => {
    // Kept for this moment only: not every change is told.
    if (groups === undefined) queueMicrotask(() => (groups = undefined));
    return (groups ??= Map.groupBy(rows.all(), nameOf));
  };
  const names = () => [...read().keys()].filter((name) => name !== undefined);
  const stop = rows.subscribe(() => {
    groups = undefined;
    onChange(new Set(names()));
  });
  return { rows: (...wanted) => wanted.flatMap((name) => read().get(name) ?? []), names, stop };
}

function fileRows<TRow extends object>(
  { confirmed, show }: LogUtils,
  nameOf: NameOf<TRow>,
  onChange: (names: ReadonlySet<string>) => void,
): RowIndex<TRow> {
  // The collection's schema is what says that the rows of the log are its rows.
  const shown = (row: { readonly value: RowValue; readonly order: number }) => show(row) as TRow;
  const files = new Files();
  const file = (row: ConfirmedRow) => files.put(row.key, nameOf(shown(row)));
  const stop = confirmed.subscribe((changes, reset) => {
    if (reset) files.clear();
    for (const change of changes) {
      if (change.operation === "delete") files.put(change.key, undefined);
      else file(change);
    }
    onChange(files.takeTouched());
  });
  for (const row of confirmed.rows()) file(row);
  files.takeTouched();
  const rows = (...names: string[]) =>
    names
      .flatMap((name) => files.keys(name))
      .flatMap((key) => confirmed.get(key) ?? [])
      .toSorted((a, b) => a.order - b.order)
      .map(shown);
  return { rows, names: () => files.names(), stop };
}

/** Keys by name, and which names something has happened to. */
class Files {
  readonly #nameOfKey = new Map<string, string>();
  readonly #keys = new Map<string, Set<string>>();
  #touched = new Set<string>();

  put(key: string, name: string | undefined): void {
    this.#remove(key);
    if (name === undefined) return;
    this.#nameOfKey.set(key, name);
    const keys = this.#keys.get(name) ?? new Set();
    this.#keys.set(name, keys.add(key));
    this.#touched.add(name);
  }

  clear(): void {
    for (const name of this.#keys.keys()) this.#touched.add(name);
    this.#nameOfKey.clear();
    this.#keys.clear();
  }

  keys(name: string): string[] {
    return [...(this.#keys.get(name) ?? [])];
  }

  names(): Iterable<string> {
    return this.#keys.keys();
  }

  /** The names since the last call. */
  takeTouched(): ReadonlySet<string> {
    const touched = this.#touched;
    this.#touched = new Set();
    return touched;
  }

  #remove(key: string): void {
    const name = this.#nameOfKey.get(key);
    if (name === undefined) return;
    this.#touched.add(name);
    this.#nameOfKey.delete(key);
    const keys = this.#keys.get(name);
    keys?.delete(key);
    if (keys?.size === 0) this.#keys.delete(name);
  }
}
