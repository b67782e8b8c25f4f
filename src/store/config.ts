import type { Sql } from "../port.ts";

/** `perdure_config`: settings that an agent keeps for itself, as one JSON value. */
export const configSchema: readonly string[] = [
  "CREATE TABLE perdure_config (id INTEGER PRIMARY KEY CHECK (id = 1), value TEXT NOT NULL) STRICT",
];

/** The settings as JSON; undefined when there are none. */
export function readConfig(db: Sql): string | undefined {
  return db.sql<{ value: string }>("SELECT value FROM perdure_config")[0]?.value;
}

export function writeConfig(db: Sql, value: string): void {
  db.sql(
    "INSERT INTO perdure_config (id, value) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET value = excluded.value",
    value,
  );
}
