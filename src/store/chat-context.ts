import type { Sql } from "../port.ts";

/** `perdure_chat`: what the last request brought along, for turns that the server starts by itself. */
export const chatContextSchema: readonly string[] = [
  "CREATE TABLE perdure_chat (id INTEGER PRIMARY KEY CHECK (id = 1), body TEXT, client_tools TEXT) STRICT",
];

/** JSON texts, or null. */
export interface ChatContextRow {
  readonly body: string | null;
  readonly clientTools: string | null;
}

export function readChatContext(db: Sql): ChatContextRow {
  const [row] = db.sql<ChatContextRow & Record<string, string | null>>(
    "SELECT body, client_tools AS clientTools FROM perdure_chat",
  );
  return row ?? { body: null, clientTools: null };
}

export function writeChatContext(db: Sql, context: ChatContextRow): void {
  db.sql(
    `INSERT INTO perdure_chat (id, body, client_tools) VALUES (1, ?, ?)
     ON CONFLICT (id) DO UPDATE SET body = excluded.body, client_tools = excluded.client_tools`,
    context.body,
    context.clientTools,
  );
}

export function deleteChatContext(db: Sql): void {
  db.sql("DELETE FROM perdure_chat");
}
