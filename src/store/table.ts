import type { AllOf } from "../base/known-options.ts";
import type { Sql, SqlValue } from "../port.ts";

/** A table by its rows: each name of a row is a column, and `failedAt` is the column `failed_at`. */
export class Table<Row extends object> {
  readonly name: string;
  readonly names: readonly string[];
  /** What `SELECT` and `RETURNING` name to get whole rows. */
  readonly columns: string;
  readonly #columns: ReadonlyMap<string, string>;
  /** By what follows the table's name: the same text each time, so that the statement is found by it at once. */
  readonly #selects = new Map<string, string>();

  /** @param renamed columns that have another name in the table */
  constructor(name: string, names: readonly string[], renamed: Partial<Record<keyof Row & string, string>> = {}) {
    this.name = name;
    this.names = names;
    this.#columns = new Map(
      names.map((one) => [
        one,
        (renamed as Record<string, string>)[one] ?? one.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      ]),
    );
    this.columns = Array.from(this.#columns, ([one, column]) => `${column} AS "${one}"`).join(", ");
  }

  column(name: string): string {
    return this.#columns.get(name) ?? name;
  }

  /**
   * @param rest what follows the table's name. Write `LIMIT (SELECT ?)`: with a value bound to `LIMIT` itself, SQLite replans the
   *   statement each time, at many times its cost.
   */
  select(db: Sql, rest: string, ...args: SqlValue[]): Row[] {
    let query = this.#selects.get(rest);
    if (query === undefined) this.#selects.set(rest, (query = `SELECT ${this.columns} FROM ${this.name} ${rest}`));
    return db.sql<Row>(query, ...args);
  }

  /** The first row for which `where` holds. */
  one(db: Sql, where: string, ...args: SqlValue[]): Row | undefined {
    return this.select(db, `WHERE ${where}`, ...args)[0];
  }

  has(db: Sql, where: string, ...args: SqlValue[]): boolean {
    return db.sql(`SELECT 1 FROM ${this.name} WHERE ${where} LIMIT 1`, ...args).length > 0;
  }

  count(db: Sql, where: string, ...args: SqlValue[]): number {
    return db.sql<{ n: number }>(`SELECT count(*) AS n FROM ${this.name} WHERE ${where}`, ...args)[0]?.n ?? 0;
  }

  /** Rows that match all conditions. One with a value of `undefined` is left out. */
  list(
    db: Sql,
    where: readonly (readonly [condition: string, ...values: (SqlValue | undefined)[]])[],
    order: string,
    limit = -1,
  ): Row[] {
    const given = where.filter(([, ...values]) => !values.includes(undefined));
    const conditions = given.length === 0 ? "" : ` WHERE ${given.map(([condition]) => condition).join(" AND ")}`;
    const values = given.flatMap(([, ...some]) => some as SqlValue[]);
    return this.select(db, `${conditions} ORDER BY ${order} LIMIT (SELECT ?)`, ...values, limit);
  }

  /** Adds a row; what is `undefined` is as the table has it. @param rest `ON CONFLICT` or `RETURNING` */
  insert<Returned extends object = Row>(db: Sql, row: Partial<Row>, rest = ""): Returned[] {
    const given = givenOf(row);
    const names = given.map(([name]) => this.column(name)).join(", ");
    const places = given.map(() => "?").join(", ");
    const query = `INSERT INTO ${this.name} (${names}) VALUES (${places}) ${rest}`;
    return db.sql<Returned>(query, ...given.map(([, value]) => value));
  }

  /** Adds a row. @returns it, as it is stored */
  add(db: Sql, row: Partial<Row>): Row {
    return this.insert(db, row, `RETURNING ${this.columns}`)[0] as Row;
  }

  /** Adds a row, or gives the one that is in conflict by this index all values of the new one. */
  put(db: Sql, row: Partial<Row>, index: string): void {
    const sets = givenOf(row).map(([name]) => `${this.column(name)} = excluded.${this.column(name)}`);
    this.insert(db, row, `ON CONFLICT ${index} DO UPDATE SET ${sets.join(", ")}`);
  }

  delete(db: Sql, where: string, ...args: SqlValue[]): void {
    db.sql(`DELETE FROM ${this.name} WHERE ${where}`, ...args);
  }

  /** The same. @returns how many rows went */
  deleted(db: Sql, where: string, ...args: SqlValue[]): number {
    return db.sql(`DELETE FROM ${this.name} WHERE ${where} RETURNING 1`, ...args).length;
  }

  /** Writes some columns; what is `undefined` stays as it is. */
  update(db: Sql, changes: Partial<Row>, where: string, ...args: SqlValue[]): void {
    this.#update(db, changes, where, args);
  }

  /** The same, at a price: SQLite keeps what it returns in a table. @returns whether there was such a row */
  updated(db: Sql, changes: Partial<Row>, where: string, ...args: SqlValue[]): boolean {
    return this.#update(db, changes, `${where} RETURNING 1`, args).length > 0;
  }

  #update(db: Sql, changes: Partial<Row>, rest: string, args: readonly SqlValue[]): unknown[] {
    const given = givenOf(changes);
    const sets = given.map(([name]) => `${this.column(name)} = ?`).join(", ");
    return db.sql(`UPDATE ${this.name} SET ${sets} WHERE ${rest}`, ...given.map(([, value]) => value), ...args);
  }
}

function givenOf(row: object): [name: string, value: SqlValue][] {
  return Object.entries(row).filter((entry): entry is [string, SqlValue] => entry[1] !== undefined);
}

/** The table of rows that have these names, between blanks. The compiler refuses one that is none, and misses one that is not there. */
export function tableOf<Row extends object>() {
  return <TEXT extends string>(name: string, ...texts: (TEXT & AllOf<keyof Row & string, TEXT>)[]): Table<Row> =>
    new Table(
      name,
      texts.flatMap((text) => text.split(" ")),
    );
}

/** The first name behind all that begin with `prefix`. */
export function behindPrefix(prefix: string): string {
  return `${prefix}\u{10FFFF}`;
}
