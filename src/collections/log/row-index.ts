import { logUtilsOf } from "./collection-options.ts";
import type { AppliedChange, ConfirmedRow, RowValue } from "./row-log.ts";
import type { RowCollection } from "./rows.ts";

/**
 * Confirmed rows of a collection by the name that each is filed under, kept current. A change costs as much as was
 * changed and a look as much as it gives, however many other rows there are.
 */
export interface RowIndex<TRow extends object> {
  /** The rows that are filed under a name, in the order of the log. */
  rows(name: string): TRow[];
  /** Every name that has rows. */
  names(): Iterable<string>;
  /** Follows the collection no more. */
  stop(): void;
}

/**
 * Files the rows of a collection on a log by `nameOf`, which must depend on the row alone; undefined: it is not filed.
 * `onChange` is called after each applied write with the names whose rows have changed, come or gone, also when there
 * are none. Other listeners of the log may have heard of the write before: what they read here is as it was.
 * @returns undefined for a collection that is not on a log: that one tells of no changes of confirmed rows.
 */
export function indexRows<TRow extends object>(
  collection: RowCollection<TRow>,
  nameOf: (row: TRow) => string | undefined,
  onChange: (names: ReadonlySet<string>) => void = () => {},
): RowIndex<TRow> | undefined {
  const utils = logUtilsOf(collection);
  if (utils === undefined) return undefined;
  const { confirmed, show } = utils;
  // The collection's schema is what says that the rows of the log are its rows.
  const shown = (row: { readonly value: RowValue; readonly order: number }) => show(row) as TRow;
  const files = new Files();
  const file = (row: ConfirmedRow) => files.put(row.key, nameOf(shown(row)), row.order);
  const stop = confirmed.subscribe((changes: readonly AppliedChange[], reset) => {
    if (reset) files.clear();
    for (const change of changes) {
      if (change.operation === "delete") files.put(change.key, undefined, change.order);
      else file(change);
    }
    onChange(files.takeTouched());
  });
  for (const row of confirmed.rows()) file(row);
  files.takeTouched();
  return {
    rows: (name) =>
      [...files.keys(name)].flatMap((key) => {
        const row = confirmed.get(key);
        return row === undefined ? [] : [shown(row)];
      }),
    names: () => files.names(),
    stop,
  };
}

/** The keys of one name, with the places of their rows. */
interface File {
  places: Map<string, number>;
  /** The highest place. */
  last: number;
  /** False: a row has come that belongs before others. */
  sorted: boolean;
}

/** Keys by name, and which names something has happened to. */
class Files {
  readonly #nameOfKey = new Map<string, string>();
  readonly #files = new Map<string, File>();
  #touched = new Set<string>();

  put(key: string, name: string | undefined, place: number): void {
    const before = this.#nameOfKey.get(key);
    if (before !== undefined) {
      this.#touched.add(before);
      // One that stays where it is stays in order.
      if (before === name && this.#files.get(name)?.places.get(key) === place) return;
      this.#remove(key, before);
    }
    if (name !== undefined) this.#add(key, name, place);
  }

  clear(): void {
    for (const name of this.#files.keys()) this.#touched.add(name);
    this.#nameOfKey.clear();
    this.#files.clear();
  }

  /** In the order of their places. */
  keys(name: string): Iterable<string> {
    const file = this.#files.get(name);
    if (file === undefined) return [];
    if (!file.sorted) {
      file.places = new Map([...file.places].toSorted(([, a], [, b]) => a - b));
      file.sorted = true;
    }
    return file.places.keys();
  }

  names(): Iterable<string> {
    return this.#files.keys();
  }

  /** The names since the last call. */
  takeTouched(): ReadonlySet<string> {
    const touched = this.#touched;
    this.#touched = new Set();
    return touched;
  }

  #add(key: string, name: string, place: number): void {
    let file = this.#files.get(name);
    if (file === undefined) this.#files.set(name, (file = { places: new Map(), last: place, sorted: true }));
    if (place < file.last) file.sorted = false;
    file.last = Math.max(file.last, place);
    file.places.set(key, place);
    this.#nameOfKey.set(key, name);
    this.#touched.add(name);
  }

  #remove(key: string, name: string): void {
    const file = this.#files.get(name);
    file?.places.delete(key);
    if (file?.places.size === 0) this.#files.delete(name);
    this.#nameOfKey.delete(key);
  }
}
