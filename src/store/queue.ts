import type { Sql } from "../port.ts";
import { DueTable, isOneOf, METHOD_COLUMNS, type MethodRow } from "./due-rows.ts";

/** `perdure_queue`: items that run in `seq` order. Ids are unique among waiting items; running or failed ones may share them. */
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
export type QueueStatus = MethodRow["status"];

export interface QueueRow extends MethodRow {
  /** New with each put, so that an item that replaces another is not taken for it. */
  readonly occurrence: string;
}

export const queueTable = new DueTable<QueueRow, number>({
  name: "perdure_queue",
  columns: [...METHOD_COLUMNS, "occurrence"],
  key: "seq",
  run: ["seq", "status"],
  waiting: "status = 'pending'",
  order: "seq",
});

/** Adds an item at the end, or replaces the one that waits under the same id, which keeps its place. */
export function putQueueItem(
  db: Sql,
  item: Pick<QueueRow, "id" | "occurrence" | "callback" | "payload" | "retry" | "createdAt" | "cause">,
): void {
  const fresh = { status: "pending", at: item.createdAt, attempts: 0, starts: 0, error: null } as const;
  queueTable.put(db, { ...item, ...fresh }, "(id) WHERE status = 'pending'");
}

interface QueueFilter {
  readonly statuses: readonly QueueStatus[];
  readonly callback?: string;
  /** Items whose payload is an object in which `key` has `value`, compared as text. */
  readonly field?: { readonly key: string; readonly value: string };
  readonly limit?: number;
}

const HAS_FIELD = `CASE WHEN json_valid(perdure_queue.payload) THEN EXISTS (
  SELECT 1 FROM json_each(perdure_queue.payload) AS field WHERE field.key = ? AND
    CASE WHEN field.type IN ('true', 'false', 'null') THEN field.type ELSE CAST(field.value AS TEXT) END = ?) END`;

/** Items in the order of the queue. */
export function listQueueItems(db: Sql, { statuses, callback, field, limit }: QueueFilter): QueueRow[] {
  const conditions = [
    isOneOf("status", statuses),
    ["callback = ?", callback] as const,
    [HAS_FIELD, field?.key, field?.value] as const,
  ];
  return queueTable.list(db, conditions, "seq", limit);
}

/** @returns how many rows went. */
export function deleteQueueItem(db: Sql, id: string): number {
  return queueTable.deleted(db, "id = ?", id);
}

/** Deletes what waits or runs. @returns how many rows went. */
export function deleteQueueItems(db: Sql, callback?: string): number {
  const open = "status IN ('pending', 'running') AND callback = coalesce(?, callback)";
  return queueTable.deleted(db, open, callback ?? null);
}

/** A running item cannot wait again beside a newer one of the same id: that one has replaced it. */
export function dropReplaced(db: Sql): void {
  const newer = "SELECT 1 FROM perdure_queue AS newer WHERE newer.id = perdure_queue.id AND newer.status = 'pending'";
  queueTable.delete(db, `status = 'running' AND EXISTS (${newer})`);
}
