import type { Sql } from "../port.ts";

/** `perdure_message`: the conversation. `seq` is its order; `body` the whole message as JSON. */
export const messageSchema: readonly string[] = [
  `CREATE TABLE perdure_message (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT`,
];

/** One stored message. */
export interface MessageRow {
  readonly id: string;
  readonly role: string;
  readonly body: string;
}

/** All messages in order. */
export function listMessages(db: Sql): MessageRow[] {
  return db.sql<MessageRow & Record<string, string>>("SELECT id, role, body FROM perdure_message ORDER BY seq");
}

/** Ids of the newest messages that stand before `before`, newest first. */
export function messageIdsBefore(db: Sql, before: number, limit: number): { id: string; seq: number }[] {
  return db.sql<{ id: string; seq: number }>(
    "SELECT id, seq FROM perdure_message WHERE seq < ? ORDER BY seq DESC LIMIT ?",
    before,
    limit,
  );
}

/** Adds a message at the end, or replaces the body of the one with its id. */
export function putMessage(db: Sql, row: MessageRow, now: number): void {
  db.sql(
    `INSERT INTO perdure_message (id, role, body, created_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET body = excluded.body, role = excluded.role`,
    row.id,
    row.role,
    row.body,
    now,
  );
}

export function deleteMessage(db: Sql, id: string): void {
  db.sql("DELETE FROM perdure_message WHERE id = ?", id);
}

export function deleteAllMessages(db: Sql): void {
  db.sql("DELETE FROM perdure_message");
}
