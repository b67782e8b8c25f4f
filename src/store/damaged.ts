import { errorText, PerdureError } from "../base/error.ts";
import type { AgentHost, Sql } from "../port.ts";

/** How the names of cells begin that keep what could not be read. */
export const ASIDE = "aside:";

/** Whom to tell of a row that cannot be read. */
export type DamageTeller = Pick<AgentHost, "emit"> & Partial<Pick<AgentHost, "report">>;

/** What was told already, by life. */
const told = new WeakMap<DamageTeller, Set<string>>();

/**
 * The value of a row's JSON; `undefined` for none or unreadable. Then the row stays, all else goes on without it, and the agent
 * says once in its life that `what` is damaged.
 */
export function readStored(host: DamageTeller, json: string | null | undefined, what: string): unknown {
  if (json === null || json === undefined) return undefined;
  try {
    return JSON.parse(json) as unknown;
  } catch (thrown) {
    tellDamage(host, what, thrown);
    return undefined;
  }
}

/** {@link readStored} of a list. What is none counts as damaged; what does not belong in it is passed over. */
export function readStoredList<T>(
  host: DamageTeller,
  json: string,
  what: string,
  belongs: (one: unknown) => one is T,
): T[] | undefined {
  const list = readStored(host, json, what);
  if (Array.isArray(list)) return list.filter(belongs);
  if (list !== undefined) tellDamage(host, what, new Error("It is no list."));
  return undefined;
}

/** Says, once in a life, that something stored cannot be read. */
export function tellDamage(host: DamageTeller, what: string, thrown: unknown): void {
  const known = told.get(host) ?? new Set();
  told.set(host, known);
  if (known.has(what)) return;
  known.add(what);
  const error = errorText(thrown);
  host.emit("row:damaged", { what, error });
  const words = `What is stored as ${what} is damaged (${error}). It was left as it is, and all else goes on without it.`;
  host.report?.(new PerdureError("database_corrupt", words, { cause: thrown }), { stage: "storage" });
}

/** Copies a table's one value into `perdure_cell` under its own name, before it is replaced. Returns the name. */
export function keepAside(db: Sql, table: "perdure_state" | "perdure_config", now: number): string {
  const key = `${ASIDE}${table.slice("perdure_".length)}:${now}`;
  db.sql(`INSERT OR IGNORE INTO perdure_cell (key, value) SELECT ?, value FROM ${table}`, key);
  return key;
}

/** The same for the cell of a name. */
export function keepCellAside(db: Sql, cell: string, now: number): string {
  const key = `${ASIDE}${cell}:${now}`;
  db.sql("INSERT OR IGNORE INTO perdure_cell (key, value) SELECT ?, value FROM perdure_cell WHERE key = ?", key, cell);
  return key;
}
