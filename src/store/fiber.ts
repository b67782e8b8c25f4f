import type { Sql, SqlValue } from "../port.ts";

/**
 * `perdure_fiber`: durable functions. `at` is the time at which something is to be done with the row (start it,
 * call its recovery hook); no time: nothing. `id`, `status` and `starts` together name one stretch of work: an
 * update that does not match all three changes nothing, so nothing settles twice.
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
export interface NewFiber {
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

/** The columns that change in a fiber's life. */
export interface FiberProgress {
  readonly status: StoredFiberStatus;
  readonly at: number | null;
  /** Throws: of the method, or of the recovery hook once the fiber was interrupted. */
  readonly attempts: number;
  /** Begun runs: of the method, or of the recovery hook once the fiber was interrupted. */
  readonly starts: number;
  /** 1 while the method that the fiber names is not there. */
  readonly missing: number;
  readonly snapshot: string | null;
  readonly metadata: string | null;
  readonly result: string | null;
  readonly error: string | null;
  readonly startedAt: number | null;
  readonly interruptedAt: number | null;
  readonly settledAt: number | null;
}

export interface FiberRow extends Omit<NewFiber, "at" | "metadata">, FiberProgress {
  readonly seq: number;
}

const COLUMNS =
  "seq, id, kind, name, idempotency_key AS idempotencyKey, payload, metadata, max_retries AS maxRetries, status, at, attempts, " +
  "starts, missing, snapshot, result, error, created_at AS createdAt, started_at AS startedAt, " +
  "interrupted_at AS interruptedAt, settled_at AS settledAt, cause";

const PROGRESS_COLUMN: Readonly<Record<keyof FiberProgress, string>> = {
  status: "status",
  at: "at",
  attempts: "attempts",
  starts: "starts",
  missing: "missing",
  snapshot: "snapshot",
  metadata: "metadata",
  result: "result",
  error: "error",
  startedAt: "started_at",
  interruptedAt: "interrupted_at",
  settledAt: "settled_at",
};

/** Names one stretch of work on a row. */
export type FiberRunKey = Pick<FiberRow, "id" | "status" | "starts">;

export function insertFiber(db: Sql, fiber: NewFiber): FiberRow {
  const [row] = db.sql<FiberRow>(
    `INSERT INTO perdure_fiber (id, kind, name, idempotency_key, payload, metadata, max_retries, status, at, created_at, cause)
      VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?) RETURNING ${COLUMNS}`,
    fiber.id,
    fiber.kind,
    fiber.name,
    fiber.idempotencyKey,
    fiber.payload,
    fiber.metadata,
    fiber.maxRetries,
    fiber.at,
    fiber.createdAt,
    fiber.cause,
  );
  return row as FiberRow;
}

export function readFiber(db: Sql, id: string): FiberRow | undefined {
  return db.sql<FiberRow>(`SELECT ${COLUMNS} FROM perdure_fiber WHERE id = ?`, id)[0];
}

export function readFiberByKey(db: Sql, key: string): FiberRow | undefined {
  return db.sql<FiberRow>(`SELECT ${COLUMNS} FROM perdure_fiber WHERE idempotency_key = ?`, key)[0];
}

export interface FiberFilter {
  readonly statuses?: readonly StoredFiberStatus[];
  readonly name?: string;
  readonly limit: number;
}

/** Fibers, newest first. */
export function listFibers(db: Sql, filter: FiberFilter): FiberRow[] {
  const where: string[] = [];
  const args: SqlValue[] = [];
  if (filter.statuses !== undefined) {
    where.push(`status IN (${filter.statuses.map(() => "?").join(", ")})`);
    args.push(...filter.statuses);
  }
  if (filter.name !== undefined) {
    where.push("name = ?");
    args.push(filter.name);
  }
  const condition = where.length === 0 ? "" : ` WHERE ${where.join(" AND ")}`;
  return db.sql<FiberRow>(
    `SELECT ${COLUMNS} FROM perdure_fiber${condition} ORDER BY seq DESC LIMIT ?`,
    ...args,
    filter.limit,
  );
}

/** Writes `changes`. @returns false, and writes nothing, when the row has moved on since `key` was read. */
export function updateFiber(db: Sql, key: FiberRunKey, changes: Partial<FiberProgress>): boolean {
  const sets: string[] = [];
  const args: SqlValue[] = [];
  for (const [name, value] of Object.entries(changes) as [keyof FiberProgress, SqlValue | undefined][]) {
    if (value === undefined) continue;
    sets.push(`${PROGRESS_COLUMN[name]} = ?`);
    args.push(value);
  }
  return (
    db.sql(
      `UPDATE perdure_fiber SET ${sets.join(", ")} WHERE id = ? AND status = ? AND starts = ? RETURNING seq`,
      ...args,
      key.id,
      key.status,
      key.starts,
    ).length > 0
  );
}

/** Deletes the row. @returns false when it has moved on since `key` was read. */
export function deleteFiber(db: Sql, key: FiberRunKey): boolean {
  return (
    db.sql(
      "DELETE FROM perdure_fiber WHERE id = ? AND status = ? AND starts = ? RETURNING seq",
      key.id,
      key.status,
      key.starts,
    ).length > 0
  );
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
        WHERE status IN (${statuses.map(() => "?").join(", ")}) AND settled_at IS NOT NULL AND settled_at < ?
        ORDER BY settled_at, seq LIMIT ?)
      RETURNING seq`,
    ...statuses,
    settledBefore ?? Number.MAX_SAFE_INTEGER,
    limit ?? -1,
  ).length;
}

/** The earliest time at which something is to be done with a row. */
export function nextFiberAt(db: Sql): number | null {
  const [row] = db.sql<{ at: number }>("SELECT at FROM perdure_fiber WHERE at IS NOT NULL ORDER BY at, seq LIMIT 1");
  return row?.at ?? null;
}

/** The ids of rows with which something is to be done now, in the order in which they are due. */
export function dueFibers(db: Sql, now: number, limit: number): string[] {
  return db
    .sql<{ id: string }>(
      "SELECT id FROM perdure_fiber WHERE at IS NOT NULL AND at <= ? ORDER BY at, seq LIMIT ?",
      now,
      limit,
    )
    .map((row) => row.id);
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
