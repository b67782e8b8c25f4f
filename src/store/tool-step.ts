import type { Sql } from "../port.ts";

/** `perdure_tool_step`: results of finished steps, kept until their call has one. `result` is JSON; null: nothing. */
export const toolStepSchema: readonly string[] = [
  `CREATE TABLE perdure_tool_step (
    message_id TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    name TEXT NOT NULL,
    result TEXT,
    PRIMARY KEY (message_id, tool_call_id, name)
  ) STRICT, WITHOUT ROWID`,
];

/** Which attempt of which call. */
export interface CallAttempt {
  readonly messageId: string;
  readonly toolCallId: string;
  readonly attempt: number;
}

/** What a step has done; undefined: it has not ended. */
export function readToolStep(
  db: Sql,
  { messageId, toolCallId }: CallAttempt,
  name: string,
): { readonly result: string | null } | undefined {
  return db.sql<{ result: string | null }>(
    "SELECT result FROM perdure_tool_step WHERE message_id = ? AND tool_call_id = ? AND name = ?",
    messageId,
    toolCallId,
    name,
  )[0];
}

/** Stores what a step has done, if that attempt of its call still runs. @returns whether it does */
export function insertToolStep(
  db: Sql,
  { messageId, toolCallId, attempt }: CallAttempt,
  name: string,
  result: string | null,
): boolean {
  const rows = db.sql(
    `INSERT INTO perdure_tool_step (message_id, tool_call_id, name, result)
     SELECT message_id, tool_call_id, ?, ? FROM perdure_tool_call
     WHERE message_id = ? AND tool_call_id = ? AND attempts = ? AND status IN ('started', 'background') RETURNING name`,
    name,
    result,
    messageId,
    toolCallId,
    attempt,
  );
  return rows.length > 0;
}

/** A call is about to begin a step: if cut from now on, it resumes behind finished steps. Returns whether the attempt runs. */
export function allowToGoOn(db: Sql, { messageId, toolCallId, attempt }: CallAttempt): boolean {
  const [row] = db.sql<{ replay: string }>(
    `SELECT replay FROM perdure_tool_call
     WHERE message_id = ? AND tool_call_id = ? AND attempts = ? AND status IN ('started', 'background')`,
    messageId,
    toolCallId,
    attempt,
  );
  if (row?.replay === "never") {
    db.sql(
      "UPDATE perdure_tool_call SET replay = 'safe' WHERE message_id = ? AND tool_call_id = ?",
      messageId,
      toolCallId,
    );
  }
  return row !== undefined;
}

/** Forgets the steps of a call. */
export function deleteToolSteps(db: Sql, messageId: string, toolCallId: string): void {
  db.sql("DELETE FROM perdure_tool_step WHERE message_id = ? AND tool_call_id = ?", messageId, toolCallId);
}

/** Forgets the steps of calls that are gone. */
export function deleteLostToolSteps(db: Sql): void {
  db.sql(
    `DELETE FROM perdure_tool_step WHERE NOT EXISTS (SELECT 1 FROM perdure_tool_call AS call
       WHERE call.message_id = perdure_tool_step.message_id AND call.tool_call_id = perdure_tool_step.tool_call_id)`,
  );
}
