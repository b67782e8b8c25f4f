import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";
import { deleteLostToolSteps, deleteToolSteps } from "./tool-step.ts";

/**
 * Calls in the background: rows of `perdure_tool_call` with status `background`. Their turn has shown a receipt, and may be over.
 * The column `background` says for whom they run and stays when they end; `result` is what they returned, until it is judged. The
 * change to `settled` requires status `background`, so that an end is told once.
 */
export const backgroundCallSchema: readonly string[] = [
  "ALTER TABLE perdure_tool_call ADD COLUMN background TEXT",
  "CREATE INDEX perdure_tool_call_background ON perdure_tool_call (seq) WHERE status = 'background'",
];

/** One call in the background. `input`, `background` and `result` are JSON. */
export interface BackgroundRow {
  readonly seq: number;
  readonly messageId: string;
  readonly toolCallId: string;
  readonly turnId: string;
  readonly step: number;
  readonly tool: string;
  readonly input: string | null;
  readonly replay: "never" | "safe";
  /** How often it was started. */
  readonly attempts: number;
  readonly startedAt: number | null;
  readonly background: string;
  readonly result: string | null;
}

const calls = tableOf<BackgroundRow>()(
  "perdure_tool_call",
  "seq messageId toolCallId turnId step tool input replay attempts startedAt background result",
);

/** Those that have not ended, oldest first. */
export function openBackgroundCalls(db: Sql): BackgroundRow[] {
  return calls.select(db, "WHERE status = 'background' ORDER BY seq");
}

export function readBackgroundCall(db: Sql, seq: number): BackgroundRow | undefined {
  return calls.one(db, "status = 'background' AND seq = ?", seq);
}

export function countBackgroundCalls(db: Sql): number {
  return calls.count(db, "status = 'background'");
}

/**
 * A call goes on without its turn. @param note JSON. @param begun whether it runs already; else it has yet to be started.
 * @returns it, if it was let through
 */
export function moveToBackground(
  db: Sql,
  messageId: string,
  toolCallId: string,
  note: string,
  begun: boolean,
): BackgroundRow | undefined {
  const [row] = db.sql<{ seq: number }>(
    `UPDATE perdure_tool_call SET status = 'background', background = ?, attempts = attempts - ?
     WHERE message_id = ? AND tool_call_id = ? AND status = 'started' RETURNING seq`,
    note,
    begun ? 0 : 1,
    messageId,
    toolCallId,
  );
  return row && readBackgroundCall(db, row.seq);
}

/** Begins an attempt. */
export function restartBackgroundCall(db: Sql, seq: number): void {
  db.sql("UPDATE perdure_tool_call SET attempts = attempts + 1 WHERE seq = ? AND status = 'background'", seq);
}

/** It has returned. @param result JSON */
export function returnBackgroundCall(db: Sql, seq: number, result: string): void {
  calls.update(db, { result }, "seq = ? AND status = 'background'", seq);
}

/** It has ended. @param keep what it returned stays: something else was shown. @returns whether it had not before */
export function settleBackgroundCall(
  db: Sql,
  { seq, messageId, toolCallId }: BackgroundRow,
  now: number,
  keep: boolean,
): boolean {
  const rows = db.sql(
    `UPDATE perdure_tool_call SET status = 'settled', settled_at = ?, result = CASE WHEN ? THEN result END,
       input = CASE WHEN decided_at IS NULL THEN NULL ELSE input END
     WHERE seq = ? AND status = 'background' RETURNING seq`,
    now,
    keep ? 1 : 0,
    seq,
  );
  if (rows.length > 0) deleteToolSteps(db, messageId, toolCallId);
  return rows.length > 0;
}

/** Forgets one that nobody wants any more. */
export function deleteBackgroundCall(db: Sql, seq: number): void {
  calls.delete(db, "seq = ? AND status = 'background'", seq);
  deleteLostToolSteps(db);
}

/** What is stored of a call that goes on, or went on, in the background. JSON. */
export function readBackgroundNote(db: Sql, messageId: string, toolCallId: string): string | undefined {
  const query = "SELECT background FROM perdure_tool_call WHERE message_id = ? AND tool_call_id = ?";
  return db.sql<{ background: string | null }>(query, messageId, toolCallId)[0]?.background ?? undefined;
}
