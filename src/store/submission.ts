import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";

/**
 * `perdure_submission`: messages that code handed in, and their outcome. The turn that carries one out (`perdure_turn`) is
 * forgotten sooner; the status follows it in the same commit.
 */
export const submissionSchema: readonly string[] = [
  `CREATE TABLE perdure_submission (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    idempotency_key TEXT UNIQUE,
    messages TEXT NOT NULL,
    edited TEXT,
    metadata TEXT,
    status TEXT NOT NULL,
    turn_id TEXT NOT NULL UNIQUE,
    error TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    settled_at INTEGER
  ) STRICT`,
];

/** Where a submission is. The first two are open. */
export type SubmissionStatus = "pending" | "running" | "completed" | "aborted" | "skipped" | "error";

/** One submission. JSON columns are texts; times are milliseconds since the epoch. */
export interface SubmissionRow {
  readonly id: string;
  readonly idempotencyKey: string | null;
  /** As they were handed in. */
  readonly messages: string;
  /** As they were changed while they waited, if they were. */
  readonly edited: string | null;
  readonly metadata: string | null;
  readonly status: SubmissionStatus;
  readonly turnId: string;
  /** Why it failed, or was cancelled. */
  readonly error: string | null;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly settledAt: number | null;
}

/** What is needed to accept a submission. */
type NewSubmission = Pick<SubmissionRow, "id" | "idempotencyKey" | "messages" | "metadata" | "turnId" | "createdAt">;

const submissions = tableOf<SubmissionRow>()(
  "perdure_submission",
  "id idempotencyKey messages edited metadata status turnId error createdAt startedAt settledAt",
);

const OPEN = "('pending', 'running')";

export function readSubmission(db: Sql, id: string): SubmissionRow | undefined {
  return submissions.one(db, "id = ?", id);
}

export function submissionByKey(db: Sql, idempotencyKey: string): SubmissionRow | undefined {
  return submissions.one(db, "idempotency_key = ?", idempotencyKey);
}

/** The submission that a turn carries out. */
export function submissionOf(db: Sql, turnId: string): SubmissionRow | undefined {
  return submissions.one(db, "turn_id = ?", turnId);
}

/** The newest first. */
export function listSubmissionRows(db: Sql, statuses: readonly SubmissionStatus[], limit: number): SubmissionRow[] {
  const where = statuses.length === 0 ? "" : `WHERE status IN (${statuses.map(() => "?").join(", ")})`;
  return submissions.select(db, `${where} ORDER BY seq DESC LIMIT (SELECT ?)`, ...statuses, limit);
}

/** @throws PerdureError `sql_failed` when the id, the key or the turn is taken. */
export function insertSubmission(db: Sql, submission: NewSubmission): void {
  submissions.insert(db, { ...submission, status: "pending" });
}

/** Other messages instead of those that were handed in, which are still known for comparing. */
export function editSubmission(db: Sql, turnId: string, messages: string): void {
  submissions.update(db, { edited: messages }, "turn_id = ?", turnId);
}

/** Why it is being cancelled. */
export function explainSubmission(db: Sql, id: string, reason: string): void {
  submissions.update(db, { error: reason }, `id = ? AND status IN ${OPEN}`, id);
}

export function startSubmission(db: Sql, turnId: string, now: number): void {
  db.sql(
    `UPDATE perdure_submission SET status = 'running', started_at = coalesce(started_at, ?)
     WHERE turn_id = ? AND status IN ${OPEN}`,
    now,
    turnId,
  );
}

/** Ends a submission. The reason of a cancel stays with it if it is what ended it. */
export function settleSubmission(
  db: Sql,
  turnId: string,
  status: SubmissionStatus,
  error: string | null,
  now: number,
): void {
  db.sql(
    `UPDATE perdure_submission SET status = ?, settled_at = ?,
       error = CASE WHEN ? = 'aborted' THEN coalesce(?, error) ELSE ? END
     WHERE turn_id = ? AND status IN ${OPEN}`,
    status,
    now,
    status,
    error,
    error,
    turnId,
  );
}

/** All turns of a session go: what runs was stopped, what waits will not run. */
export function dropSubmissions(db: Sql, session: string, now: number): void {
  db.sql(
    `UPDATE perdure_submission SET settled_at = ?, status = CASE status WHEN 'running' THEN 'aborted' ELSE 'skipped' END
     WHERE status IN ${OPEN} AND turn_id IN (SELECT id FROM perdure_turn WHERE session = ?)`,
    now,
    session,
  );
}

/** Forgets what a message said that was handed in: it is deleted. That it was handed in is still known. */
export function emptySubmitted(db: Sql, messageId: string): void {
  const without = (column: string) => `(SELECT json_group_array(CASE json_extract(value, '$.id') WHEN ?
    THEN json_object('id', ?, 'role', json_extract(value, '$.role'), 'parts', json_array()) ELSE json(value) END) FROM json_each(${column}))`;
  const names = (column: string) => `EXISTS (SELECT 1 FROM json_each(${column}) WHERE json_extract(value, '$.id') = ?)`;
  for (const column of ["messages", "edited"]) {
    const change = `UPDATE perdure_submission SET ${column} = ${without(column)}`;
    db.sql(`${change} WHERE ${column} IS NOT NULL AND ${names(column)}`, messageId, messageId, messageId);
  }
}

/** Forgets an ended submission. @returns whether there was one. */
export function deleteSubmissionRow(db: Sql, id: string): boolean {
  return submissions.deleted(db, `id = ? AND status NOT IN ${OPEN}`, id) > 0;
}

/** Forgets submissions that ended before `olderThan`. @returns how many. */
export function deleteSubmissionRows(db: Sql, olderThan: number): number {
  return submissions.deleted(db, `settled_at < ? AND status NOT IN ${OPEN}`, olderThan);
}
