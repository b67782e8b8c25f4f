import type { Sql, SqlValue } from "../port.ts";

/**
 * `perdure_queue`: items that run one after the other in the order of `seq`. Of the items that wait, at most
 * one has a given id; one that runs, or has failed, may share it.
 */
export const queueSchema: readonly string[] = [
  `CREATE TABLE perdure_queue (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    occurrence TEXT NOT NULL,
    callback TEXT NOT NULL,
    payload TEXT,
    retry TEXT NOT NULL,
    status TEXT NOT NULL,
    at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    starts INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    failed_at INTEGER,
    created_at INTEGER NOT NULL
  ) STRICT`,
  "CREATE UNIQUE INDEX perdure_queue_waiting_id ON perdure_queue (id) WHERE status = 'pending'",
  "CREATE INDEX perdure_queue_id ON perdure_queue (id)",
  "CREATE INDEX perdure_queue_status ON perdure_queue (status, seq)",
  "CREATE INDEX perdure_queue_failed ON perdure_queue (failed_at, seq) WHERE status = 'failed'",
];

/** Which turn an item comes of. A step of its own: there are tables from before. */
export const queueCauseSchema: readonly string[] = ["ALTER TABLE perdure_queue ADD COLUMN cause TEXT"];

/** `failed` is the end of an item whose tries are used up; the row stays to be read. */
export type QueueStatus = "pending" | "running" | "failed";

/** What a new row needs. `payload` and `retry` are JSON. */
export interface NewQueueItem {
  readonly id: string;
  /** New with each put, so that an item that replaces another is not taken for it. */
  readonly occurrence: string;
  readonly callback: string;
  readonly payload: string | null;
  readonly retry: string;
  readonly createdAt: number;
  /** Which turn it comes of, as JSON. */
  readonly cause: string | null;
}

export interface QueueRow extends NewQueueItem {
  readonly seq: number;
  readonly status: QueueStatus;
  readonly at: number;
  readonly attempts: number;
  readonly starts: number;
  readonly error: string | null;
  readonly failedAt: number | null;
}

const COLUMNS =
  "seq, id, occurrence, callback, payload, retry, status, at, attempts, starts, error, failed_at AS failedAt, created_at AS createdAt, cause";

/** Names one run of a row. */
export type QueueRunKey = Pick<QueueRow, "seq" | "starts">;
const THIS_RUN = "seq = ? AND starts = ? AND status = 'running'";

/** Adds an item at the end, or replaces the one that waits under the same id, which keeps its place. */
export function putQueueItem(db: Sql, item: NewQueueItem): void {
  db.sql(
    `INSERT INTO perdure_queue (id, occurrence, callback, payload, retry, status, at, created_at, cause)
      VALUES (?, ?, ?, ?, ?, 'pending', ?, ?, ?)
      ON CONFLICT (id) WHERE status = 'pending' DO UPDATE SET occurrence = excluded.occurrence,
        callback = excluded.callback, payload = excluded.payload, retry = excluded.retry, at = excluded.at, attempts = 0,
        starts = 0, error = NULL, created_at = excluded.created_at, cause = excluded.cause`,
    item.id,
    item.occurrence,
    item.callback,
    item.payload,
    item.retry,
    item.createdAt,
    item.createdAt,
    item.cause,
  );
}

/** The newest item with the id, in whatever status. */
export function readQueueItem(db: Sql, id: string): QueueRow | undefined {
  return db.sql<QueueRow>(`SELECT ${COLUMNS} FROM perdure_queue WHERE id = ? ORDER BY seq DESC LIMIT 1`, id)[0];
}

export interface QueueFilter {
  readonly statuses: readonly QueueStatus[];
  readonly callback?: string;
  /** Items whose payload is an object in which `key` has `value`, compared as text. */
  readonly field?: { readonly key: string; readonly value: string };
  readonly limit?: number;
}

/** Items in the order of the queue. */
export function listQueueItems(db: Sql, filter: QueueFilter): QueueRow[] {
  const where = [`status IN (${filter.statuses.map(() => "?").join(", ")})`];
  const args: SqlValue[] = [...filter.statuses];
  if (filter.callback !== undefined) {
    where.push("callback = ?");
    args.push(filter.callback);
  }
  if (filter.field !== undefined) {
    where.push(
      `CASE WHEN json_valid(perdure_queue.payload) THEN EXISTS (SELECT 1 FROM json_each(perdure_queue.payload) AS field WHERE field.key = ? AND
        CASE WHEN field.type IN ('true', 'false', 'null') THEN field.type ELSE CAST(field.value AS TEXT) END = ?) END`,
    );
    args.push(filter.field.key, filter.field.value);
  }
  return db.sql<QueueRow>(
    `SELECT ${COLUMNS} FROM perdure_queue WHERE ${where.join(" AND ")} ORDER BY seq LIMIT ?`,
    ...args,
    filter.limit ?? -1,
  );
}

/** @returns how many rows went. */
export function deleteQueueItem(db: Sql, id: string): number {
  return db.sql("DELETE FROM perdure_queue WHERE id = ? RETURNING seq", id).length;
}

/** Deletes what waits or runs. @returns how many rows went. */
export function deleteQueueItems(db: Sql, callback?: string): number {
  const open = "status IN ('pending', 'running')";
  return callback === undefined
    ? db.sql(`DELETE FROM perdure_queue WHERE ${open} RETURNING seq`).length
    : db.sql(`DELETE FROM perdure_queue WHERE ${open} AND callback = ? RETURNING seq`, callback).length;
}

/** The item whose turn it is, and when. */
export function headOfQueue(db: Sql): { readonly seq: number; readonly at: number } | undefined {
  return db.sql<{ seq: number; at: number }>(
    "SELECT seq, at FROM perdure_queue WHERE status = 'pending' ORDER BY seq LIMIT 1",
  )[0];
}

/** Counts the start of a waiting item; nothing when it is gone or no longer waits. */
export function startQueueItem(db: Sql, seq: number): QueueRow | undefined {
  return db.sql<QueueRow>(
    `UPDATE perdure_queue SET status = 'running', starts = starts + 1
      WHERE seq = ? AND status = 'pending' RETURNING ${COLUMNS}`,
    seq,
  )[0];
}

export function finishQueueItem(db: Sql, run: QueueRunKey): void {
  db.sql(`DELETE FROM perdure_queue WHERE ${THIS_RUN}`, run.seq, run.starts);
}

/** Counts a throw and waits until `at`; the item goes instead if another already waits under its id. */
export function retryQueueItem(db: Sql, run: QueueRunKey, at: number, error: string): void {
  dropReplaced(db);
  db.sql(
    `UPDATE perdure_queue SET status = 'pending', at = ?, attempts = attempts + 1, error = ? WHERE ${THIS_RUN}`,
    at,
    error,
    run.seq,
    run.starts,
  );
}

/** Ends the item as failed, and keeps only the `keep` items that failed last. */
export function failQueueItem(db: Sql, run: QueueRunKey, error: string, now: number, keep: number): void {
  db.sql(
    `UPDATE perdure_queue SET status = 'failed', attempts = attempts + 1, error = ?, failed_at = ? WHERE ${THIS_RUN}`,
    error,
    now,
    run.seq,
    run.starts,
  );
  db.sql(
    `DELETE FROM perdure_queue WHERE seq IN
      (SELECT seq FROM perdure_queue WHERE status = 'failed' ORDER BY failed_at DESC, seq DESC LIMIT -1 OFFSET ?)`,
    keep,
  );
}

/** Makes items that an earlier life left running wait again. Their starts stay counted. */
export function releaseQueueItems(db: Sql): void {
  const [one] = db.sql("SELECT seq FROM perdure_queue WHERE status = 'running' LIMIT 1");
  if (one === undefined) return;
  db.tx(() => {
    dropReplaced(db);
    db.sql("UPDATE perdure_queue SET status = 'pending' WHERE status = 'running'");
  });
}

/** A running item cannot wait again beside a newer one of the same id: that one has replaced it. */
function dropReplaced(db: Sql): void {
  db.sql(
    `DELETE FROM perdure_queue WHERE status = 'running' AND EXISTS
      (SELECT 1 FROM perdure_queue AS newer WHERE newer.id = perdure_queue.id AND newer.status = 'pending')`,
  );
}
