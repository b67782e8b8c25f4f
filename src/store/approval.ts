import type { Sql } from "../port.ts";

/** `perdure_approval`: questions to a person that are open only for a time. */
export const approvalSchema: readonly string[] = [
  "CREATE TABLE perdure_approval (tool_call_id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID",
];

/** Notes when a question is over. Of several about calls of one id, in different sessions, the first counts. */
export function askApproval(db: Sql, toolCallId: string, expiresAt: number): void {
  db.sql(
    `INSERT INTO perdure_approval (tool_call_id, expires_at) VALUES (?, ?)
     ON CONFLICT (tool_call_id) DO UPDATE SET expires_at = min(expires_at, excluded.expires_at)`,
    toolCallId,
    expiresAt,
  );
}

/** The question is answered, or moot. */
export function settleApproval(db: Sql, toolCallId: string): void {
  if (db.sql("SELECT 1 FROM perdure_approval WHERE tool_call_id = ?", toolCallId).length === 0) return;
  db.sql("DELETE FROM perdure_approval WHERE tool_call_id = ?", toolCallId);
}

export function nextApprovalExpiry(db: Sql): number | null {
  return db.sql<{ at: number | null }>("SELECT min(expires_at) AS at FROM perdure_approval")[0]?.at ?? null;
}

export function expiredApprovals(db: Sql, now: number): string[] {
  const rows = db.sql<{ id: string }>(
    "SELECT tool_call_id AS id FROM perdure_approval WHERE expires_at <= ? ORDER BY expires_at",
    now,
  );
  return rows.map((row) => row.id);
}

/** Drops questions about calls that are in no message any more. */
export function dropLostApprovals(db: Sql): void {
  if (db.sql("SELECT 1 FROM perdure_approval LIMIT 1").length === 0) return;
  db.sql(
    `DELETE FROM perdure_approval WHERE NOT EXISTS (
       SELECT 1 FROM perdure_message WHERE role = 'assistant' AND instr(body, json_quote(tool_call_id)) > 0)`,
  );
}
