import { systemClock } from "../base/time.ts";
import type { AgentHost, Sql } from "../port.ts";
import { migrate } from "./migrations.ts";

/** The part of a host that sessions need: a database, a clock, and leave to take their time. */
export type SessionStore = Pick<
  AgentHost,
  "sql" | "tx" | "blank" | "clock" | "emit" | "durable" | "keepAwake" | "breathe"
>;

/** A database, and what is known of its surroundings. What is left out is as simple as can be. */
export type OwnStore = Sql & Partial<SessionStore>;

/** Brings a database for sessions of no agent to the newest schema. Throws PerdureError `database_newer`. */
export function toSessionStore(store: OwnStore): SessionStore {
  migrate(store);
  return {
    sql: (query, ...args) => store.sql(query, ...args),
    tx: (work, level) => store.tx(work, level),
    blank: false,
    clock: store.clock ?? systemClock,
    emit: (type, payload) => store.emit?.(type, payload),
    durable: async () => store.durable?.(),
    keepAwake: (work) => store.keepAwake?.(work) ?? work,
    breathe: () => store.breathe?.() ?? new Promise((resolve) => setTimeout(resolve, 0)),
  };
}
