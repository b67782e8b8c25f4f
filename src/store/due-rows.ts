import type { Sql, SqlValue } from "../port.ts";
import { Table } from "./table.ts";

/** Columns that all tables of work with a due time have. */
export interface DueRow {
  /** When something is to be done with the row; null: the clock does not say. Milliseconds since the epoch. */
  readonly at: number | null;
  /** Tries that threw. */
  readonly attempts: number;
  /** Tries that began, also those that the end of a process cut. */
  readonly starts: number;
  /** Why the last try failed. */
  readonly error: string | null;
}

type Column<Row> = keyof Row & string;

interface DueTableOptions<Row> {
  readonly name: string;
  /** All columns, by the names that they have in a row: `failedAt` is the column `failed_at`. */
  readonly columns: readonly Column<Row>[];
  /** Those that have another name in the table. */
  readonly renamed?: Partial<Record<Column<Row>, string>>;
  /** What names a row. */
  readonly key: Column<Row>;
  /** What names one run of a row together with its start: a write for another run than that of now changes nothing. */
  readonly run: readonly Column<Row>[];
  /** Which rows wait, and in which order they are run. */
  readonly waiting: string;
  readonly order: string;
}

/** The life of rows with a due time: they wait, are started, and changed or removed by how their run ended. */
export class DueTable<Row extends DueRow, Key extends SqlValue> extends Table<Row> {
  readonly #options: DueTableOptions<Row>;
  readonly #isRun: string;

  constructor(options: DueTableOptions<Row>) {
    super(options.name, options.columns, options.renamed);
    this.#options = options;
    this.#isRun = [...options.run, "starts"].map((name) => `${this.column(name)} = ?`).join(" AND ");
  }

  /** The newest row in which a column has this value. */
  find(db: Sql, column: Column<Row>, value: SqlValue): Row | undefined {
    return this.list(db, [[`${this.column(column)} = ?`, value]], `${this.column(this.#options.key)} DESC`, 1)[0];
  }

  /** The first rows that wait, in order. */
  waiting(db: Sql, limit: number): { readonly key: Key; readonly at: number }[] {
    const { key, waiting, order } = this.#options;
    const query = `SELECT ${this.column(key)} AS key, at FROM ${this.name} WHERE ${waiting} ORDER BY ${order} LIMIT (SELECT ?)`;
    return db.sql<{ key: Key; at: number }>(query, limit);
  }

  /** Counts the start of a row that waits and is due; nothing when it is gone or does neither. */
  start(db: Sql, key: Key, now: number): Row | undefined {
    const { name, waiting, columns } = this.#options;
    const running = (columns as readonly string[]).includes("status") ? ", status = 'running'" : "";
    return db.sql<Row>(
      `UPDATE ${name} SET starts = starts + 1${running}
       WHERE ${this.column(this.#options.key)} = ? AND ${waiting} AND at <= ? RETURNING ${this.columns}`,
      key,
      now,
    )[0];
  }

  /** Writes what became of a run. @returns false, and writes nothing, when the row has moved on since `run` was read */
  change(db: Sql, run: Row, changes: Partial<Row>): boolean {
    return this.updated(db, changes, this.#isRun, ...this.#runOf(run));
  }

  /** Deletes the row of a run. @returns false when it has moved on since `run` was read */
  remove(db: Sql, run: Row): boolean {
    const query = `DELETE FROM ${this.name} WHERE ${this.#isRun} RETURNING starts`;
    return db.sql(query, ...this.#runOf(run)).length > 0;
  }

  /** The row as it is now, while it stands for the same run. */
  current(db: Sql, run: Row): Row | undefined {
    return this.select(db, `WHERE ${this.#isRun}`, ...this.#runOf(run))[0];
  }

  #runOf(row: Row): SqlValue[] {
    return [...this.#options.run, "starts" as const].map((name) => row[name as Column<Row>] as SqlValue);
  }

  /** Makes rows that an earlier life left running wait again. Their starts stay counted. @param first in the same commit */
  release(db: Sql, first?: () => void): void {
    const { name } = this.#options;
    const [one] = db.sql(`SELECT 1 FROM ${name} WHERE status = 'running' LIMIT 1`);
    if (one === undefined) return;
    db.tx(() => {
      first?.();
      db.sql(`UPDATE ${name} SET status = 'pending' WHERE status = 'running'`);
    });
  }

  /** Keeps only the rows that failed last. */
  keepFailed(db: Sql, keep: number): void {
    const { name } = this.#options;
    db.sql(
      `DELETE FROM ${name} WHERE seq IN
        (SELECT seq FROM ${name} WHERE status = 'failed' ORDER BY failed_at DESC, seq DESC LIMIT -1 OFFSET (SELECT ?))`,
      keep,
    );
  }
}

/** A row that calls a method of the agent. `failed` is the end of one whose tries are used up; it stays to be read. */
export interface MethodRow extends DueRow {
  readonly seq: number;
  readonly id: string;
  readonly callback: string;
  /** JSON. */
  readonly payload: string | null;
  /** JSON of resolved retry options. */
  readonly retry: string;
  readonly status: "pending" | "running" | "failed";
  readonly at: number;
  readonly failedAt: number | null;
  readonly createdAt: number;
  /** Which turn it comes of, as JSON. */
  readonly cause: string | null;
}

/** Its columns. */
export const METHOD_COLUMNS = [
  ...(["seq", "id", "callback", "payload", "retry", "status", "at", "attempts", "starts", "error"] as const),
  ...(["failedAt", "createdAt", "cause"] as const),
] satisfies readonly (keyof MethodRow)[];

/** The condition that a column has one of these values; undefined: whatever it has. */
export function isOneOf(column: string, values: readonly string[] | undefined) {
  return [`${column} IN (SELECT value FROM json_each(?))`, values && JSON.stringify(values)] as const;
}
