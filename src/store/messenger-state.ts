import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";

/**
 * `perdure_messenger_state`: what a network's client keeps at its agent: caches, locks, lists, as JSON. Expired rows count as
 * gone, and are deleted now and then.
 */
export const messengerStateSchema: readonly string[] = [
  `CREATE TABLE perdure_messenger_state (
    messenger TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (messenger, key)
  ) STRICT, WITHOUT ROWID`,
];

/** One value. */
interface MessengerStateRow {
  readonly messenger: string;
  readonly key: string;
  readonly value: string;
  readonly expiresAt: number | null;
}

const state = tableOf<MessengerStateRow>()("perdure_messenger_state", "messenger key value expiresAt");

/** What is kept under a name and has not expired by `now`. */
export function readMessengerState(
  db: Sql,
  messenger: string,
  key: string,
  now: number,
): MessengerStateRow | undefined {
  const where = "WHERE messenger = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?)";
  return state.select(db, where, messenger, key, now)[0];
}

export function writeMessengerState(db: Sql, row: MessengerStateRow): void {
  state.put(db, row, "(messenger, key)");
}

export function deleteMessengerState(db: Sql, messenger: string, key: string): void {
  db.sql("DELETE FROM perdure_messenger_state WHERE messenger = ? AND key = ?", messenger, key);
}

/** Deletes what has expired. */
export function trimMessengerState(db: Sql, now: number): void {
  db.sql("DELETE FROM perdure_messenger_state WHERE expires_at <= ?", now);
}
