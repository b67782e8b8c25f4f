import type { Sql } from "../port.ts";

/** `perdure_state`: the agent's one state value, as JSON. No row: never set. */
export const stateSchema: readonly string[] = [
  "CREATE TABLE perdure_state (id INTEGER PRIMARY KEY CHECK (id = 1), value TEXT NOT NULL) STRICT",
];

/** The stored JSON, or `undefined` when state was never set. */
export function readState(db: Sql): string | undefined {
  return db.sql<{ value: string }>("SELECT value FROM perdure_state")[0]?.value;
}

export function writeState(db: Sql, value: string): void {
  db.sql(
    "INSERT INTO perdure_state (id, value) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET value = excluded.value",
    value,
  );
}
