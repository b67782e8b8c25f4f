import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";

/**
 * `perdure_action`: what the agent's actions have done, one row per key, `pending` from before the action runs until its result
 * is stored. The result stands last, so walking the rows does not read it.
 */
export const actionSchema: readonly string[] = [
  `CREATE TABLE perdure_action (
    key TEXT PRIMARY KEY,
    action TEXT NOT NULL,
    digest TEXT NOT NULL,
    session TEXT NOT NULL,
    named INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    settled_at INTEGER,
    output TEXT
  ) STRICT, WITHOUT ROWID`,
];

/** One row. `output` is JSON; times are milliseconds since the epoch. */
export interface ActionRow {
  readonly key: string;
  readonly action: string;
  /** Of the action and its input. */
  readonly digest: string;
  /** The session of the turn that began it. */
  readonly session: string;
  /** 1: the app named the key. 0: it is that of one call. */
  readonly named: number;
  /** How often it was begun. */
  readonly attempts: number;
  readonly startedAt: number;
  /** Null while it is pending. */
  readonly settledAt: number | null;
  readonly output: string | null;
}

/** A row without its result. */
export type ActionHead = Omit<ActionRow, "output">;

const heads = tableOf<ActionHead>()("perdure_action", "key action digest session named attempts startedAt settledAt");

export function readAction(db: Sql, key: string): ActionRow | undefined {
  return db.sql<ActionRow>(`SELECT ${heads.columns}, output FROM perdure_action WHERE key = ?`, key)[0];
}

/** Begins an action. @throws PerdureError `sql_failed` when there is a row of that key. */
export function insertAction(
  db: Sql,
  row: Pick<ActionRow, "key" | "action" | "digest" | "session" | "named" | "startedAt">,
): void {
  heads.insert(db, { ...row, attempts: 1 });
}

/** Begins a pending one again. */
export function restartAction(db: Sql, key: string, session: string, now: number): void {
  db.sql(
    `UPDATE perdure_action SET attempts = attempts + 1, started_at = ?, session = ?
     WHERE key = ? AND settled_at IS NULL`,
    now,
    session,
    key,
  );
}

/** Stores the result of the attempt that began at `startedAt`. Returns whether the row was still that attempt's, and pending. */
export function settleAction(db: Sql, key: string, startedAt: number, output: string, now: number): boolean {
  const where = "key = ? AND started_at = ? AND settled_at IS NULL";
  return heads.updated(db, { settledAt: now, ...{ output } }, where, key, startedAt);
}

/** Forgets the attempt that began at `startedAt`, so that the action may be tried again. */
export function deletePendingAction(db: Sql, key: string, startedAt: number): void {
  heads.delete(db, "key = ? AND started_at = ? AND settled_at IS NULL", key, startedAt);
}

/** Forgets one action, whatever became of it. @returns whether there was one. */
export function deleteAction(db: Sql, key: string): boolean {
  return heads.deleted(db, "key = ?", key) > 0;
}

/** Forgets what was begun in these sessions. @returns how many there were. */
export function deleteActionsOf(db: Sql, sessions: readonly string[]): number {
  return heads.deleted(db, "session IN (SELECT value FROM json_each(?))", JSON.stringify(sessions));
}

/** The newest first, without their results. */
export function listActions(db: Sql, limit: number): ActionHead[] {
  return heads.select(db, "ORDER BY started_at DESC, key LIMIT (SELECT ?)", limit);
}

/** Forgets at most `limit` of those that were settled, or begun and never settled, before these times. */
export function trimActions(db: Sql, settledBefore: number, pendingBefore: number, limit: number): number {
  const old = `SELECT key FROM perdure_action
    WHERE settled_at < ? OR (settled_at IS NULL AND started_at < ?) LIMIT (SELECT ?)`;
  return heads.deleted(db, `key IN (${old})`, settledBefore, pendingBefore, limit);
}
