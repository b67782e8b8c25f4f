import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";

/**
 * `perdure_call_id`: the ids of all tool calls in the agent's messages, each with its message. Providers repeat ids across turns
 * and conversations; an id that another message has is not used again. Rows go with their message. Of calls older than this table
 * only those at the ends of conversations are here: others wait for nothing.
 */
export const callIdSchema: readonly string[] = [
  `CREATE TABLE perdure_call_id (
    tool_call_id TEXT PRIMARY KEY,
    message_id TEXT NOT NULL
  ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX perdure_call_id_message ON perdure_call_id (message_id)",
  `CREATE TRIGGER perdure_call_id_gone AFTER DELETE ON perdure_message BEGIN
     DELETE FROM perdure_call_id WHERE message_id = OLD.id;
   END`,
  `INSERT OR IGNORE INTO perdure_call_id (tool_call_id, message_id)
   SELECT json_extract(part.value, '$.toolCallId'), m.id
   FROM perdure_session AS s JOIN perdure_message AS m ON m.seq = s.leaf,
     json_each(CASE WHEN json_valid(m.body) THEN m.body ELSE '{}' END, '$.parts') AS part
   WHERE part.type = 'object' AND typeof(json_extract(part.value, '$.toolCallId')) = 'text'`,
];

const ids = tableOf<{ readonly toolCallId: string; readonly messageId: string }>()(
  "perdure_call_id",
  "toolCallId messageId",
);

/** Whether another message than this one has a call of this id. */
export function isCallIdTaken(db: Sql, toolCallId: string, messageId: string): boolean {
  return ids.has(db, "tool_call_id = ? AND message_id <> ?", toolCallId, messageId);
}

/** A message has a call of this id from now on. */
export function insertCallId(db: Sql, toolCallId: string, messageId: string): void {
  ids.insert(db, { toolCallId, messageId }, "ON CONFLICT DO NOTHING");
}
