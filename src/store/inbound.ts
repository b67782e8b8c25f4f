import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";

/**
 * `perdure_inbound`: what came from a messenger, by the network's name for it, to know redeliveries. Written in the commit that
 * acts on it; also for what was refused.
 */
export const inboundSchema: readonly string[] = [
  `CREATE TABLE perdure_inbound (
    messenger TEXT NOT NULL,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    turn_id TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (messenger, key)
  ) STRICT, WITHOUT ROWID`,
];

/** No network delivers anything again after so long. */
export const KEPT_MS = 30 * 24 * 60 * 60_000;
/** After how many that came what is too old is looked for. */
export const TRIM_EVERY = 500;

/** What was done about something that came. */
type InboundKind = "turn" | "joined" | "press" | "stop" | "edit" | "refused" | "notice" | "waits";

/** One thing that came. */
interface InboundRow {
  readonly kind: InboundKind;
  readonly turnId: string | null;
  readonly at: number;
}

const inbound = tableOf<InboundRow>()("perdure_inbound", "kind turnId at");

/** What is known under the first of these names. */
export function findInbound(db: Sql, messenger: string, keys: readonly string[]): InboundRow | undefined {
  for (const key of keys) {
    const [row] = inbound.select(db, "WHERE messenger = ? AND key = ?", messenger, key);
    if (row !== undefined) return row;
  }
  return undefined;
}

/** Notes something under all of its names. */
export function insertInbound(db: Sql, messenger: string, keys: readonly string[], row: InboundRow): void {
  const { kind, turnId, at } = row;
  for (const key of keys)
    inbound.insert(db, { kind, turnId, at, ...{ messenger, key } }, "ON CONFLICT (messenger, key) DO NOTHING");
}

/** What waited is dealt with now: it is noted anew. */
export function forgetInbound(db: Sql, messenger: string, keys: readonly string[]): void {
  for (const key of keys) db.sql("DELETE FROM perdure_inbound WHERE messenger = ? AND key = ?", messenger, key);
}

/** Forgets what came before `until`: no network delivers so late. @returns how many */
export function trimInbound(db: Sql, until: number): number {
  return db.sql("DELETE FROM perdure_inbound WHERE at < ? RETURNING key", until).length;
}
