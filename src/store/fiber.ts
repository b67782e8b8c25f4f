import type { Sql } from "../port.ts";
import { type DueRow, DueTable, isOneOf } from "./due-rows.ts";

/**
 * `perdure_fiber`: durable functions. `at` is when the row needs something (a start, its recovery hook); none: nothing. `id`,
 * `status` and `starts` together name one stretch of work: updates must match all three, so nothing settles twice.
 */
export const fiberSchema: readonly string[] = [
  `CREATE TABLE perdure_fiber (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    idempotency_key TEXT,
    payload TEXT,
    metadata TEXT,
    max_retries INTEGER NOT NULL DEFAULT 0,
    status TEXT NOT NULL,
    at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    starts INTEGER NOT NULL DEFAULT 0,
    missing INTEGER NOT NULL DEFAULT 0,
    snapshot TEXT,
    result TEXT,
    error TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    interrupted_at INTEGER,
    settled_at INTEGER
  ) STRICT`,
  "CREATE UNIQUE INDEX perdure_fiber_key ON perdure_fiber (idempotency_key) WHERE idempotency_key IS NOT NULL",
  "CREATE INDEX perdure_fiber_due ON perdure_fiber (at, seq) WHERE at IS NOT NULL",
  "CREATE INDEX perdure_fiber_status ON perdure_fiber (status, seq)",
  "CREATE INDEX perdure_fiber_unstarted ON perdure_fiber (seq) WHERE status = 'pending' AND at IS NULL",
  "CREATE INDEX perdure_fiber_missing ON perdure_fiber (seq) WHERE missing = 1",
];

/** Which turn a fiber comes of. A step of its own: there are tables from before. */
export const fiberCauseSchema: readonly string[] = ["ALTER TABLE perdure_fiber ADD COLUMN cause TEXT"];

/** How a fiber was begun: `runFiber`, `spawnFiber` or `startFiber`. */
export type FiberKind = "run" | "spawn" | "start";

/** `recovering`: its recovery hook runs now. To users that is still `interrupted`. */
export type StoredFiberStatus =
  | "pending"
  | "running"
  | "recovering"
  | "interrupted"
  | "completed"
  | "aborted"
  | "error";

/** What a new row needs. `payload` and `metadata` are JSON. */
interface NewFiber {
  readonly id: string;
  readonly kind: FiberKind;
  readonly name: string;
  readonly idempotencyKey: string | null;
  readonly payload: string | null;
  readonly metadata: string | null;
  readonly maxRetries: number;
  readonly at: number | null;
  readonly createdAt: number;
  /** Which turn it comes of, as JSON. */
  readonly cause: string | null;
}

/** Attempts and starts are of the method, or of the recovery hook once the fiber was interrupted. */
export interface FiberRow extends NewFiber, DueRow {
  readonly seq: number;
  readonly status: StoredFiberStatus;
  /** 1 while the method that the fiber names is not there. */
  readonly missing: number;
  readonly snapshot: string | null;
  readonly result: string | null;
  readonly startedAt: number | null;
  readonly interruptedAt: number | null;
  readonly settledAt: number | null;
}

export const fiberTable = new DueTable<FiberRow, string>({
  name: "perdure_fiber",
  columns: [
    ...(["seq", "id", "kind", "name", "idempotencyKey", "payload", "metadata", "maxRetries", "status", "at"] as const),
    ...(["attempts", "starts", "missing", "snapshot", "result", "error", "createdAt", "startedAt"] as const),
    ...(["interruptedAt", "settledAt", "cause"] as const),
  ],
  key: "id",
  run: ["id", "status"],
  waiting: "at IS NOT NULL",
  order: "at, seq",
});

export function insertFiber(db: Sql, fiber: NewFiber): FiberRow {
  return fiberTable.add(db, { ...fiber, status: "pending" });
}

export function readFiber(db: Sql, id: string): FiberRow | undefined {
  return fiberTable.find(db, "id", id);
}

interface FiberFilter {
  readonly statuses?: readonly StoredFiberStatus[];
  readonly name?: string;
  readonly limit: number;
}

/** Fibers, newest first. */
export function listFibers(db: Sql, { statuses, name, limit }: FiberFilter): FiberRow[] {
  return fiberTable.list(db, [isOneOf("status", statuses), ["name = ?", name]], "seq DESC", limit);
}

/** Deletes settled fibers, oldest first. @returns how many went. */
export function deleteSettledFibers(
  db: Sql,
  statuses: readonly StoredFiberStatus[],
  settledBefore: number | undefined,
  limit: number | undefined,
): number {
  return db.sql(
    `DELETE FROM perdure_fiber WHERE seq IN
      (SELECT seq FROM perdure_fiber
        WHERE status IN (SELECT value FROM json_each(?)) AND settled_at IS NOT NULL AND settled_at < ?
        ORDER BY settled_at, seq LIMIT (SELECT ?))
      RETURNING seq`,
    ...[JSON.stringify(statuses), settledBefore ?? Number.MAX_SAFE_INTEGER, limit ?? -1],
  ).length;
}

/** What an earlier life left behind: the ids of rows that only a living process could carry on. In order. */
export function orphanedFibers(db: Sql): string[] {
  return db
    .sql<{ id: string }>(
      `SELECT seq, id FROM perdure_fiber WHERE status IN ('running', 'recovering')
        UNION ALL SELECT seq, id FROM perdure_fiber WHERE status = 'pending' AND at IS NULL
        UNION ALL SELECT seq, id FROM perdure_fiber WHERE missing = 1
        ORDER BY seq`,
    )
    .map((row) => row.id);
}
