import type { Sql } from "../port.ts";
import { markSchema, migrate, type Migration, migrations, schemaVersion } from "./migrations.ts";

/**
 * Tables that an agent's database has from their first row on. Each table and index costs a page, and every open database parses
 * and keeps the whole schema. What has none of them reads as if they were there and empty. Two rules follow for SQL on them: no
 * `rowid`, and no trigger on another table that names them.
 */
const LATE_TABLES: readonly string[] = [
  "perdure_action",
  "perdure_agent_run",
  "perdure_budget_grant",
  "perdure_child",
  "perdure_compaction",
  "perdure_config",
  "perdure_delivery",
  "perdure_delivery_part",
  "perdure_fiber",
  "perdure_file",
  "perdure_file_body",
  "perdure_frame",
  "perdure_inbound",
  "perdure_messenger_state",
  "perdure_queue",
  "perdure_run",
  "perdure_schedule",
  "perdure_submission",
  "perdure_task",
  "perdure_tool_step",
];

/** From this schema on a database may have none of them. */
const LATE_SINCE = 22;

/** A table as the newest schema has it. */
interface SchemaTable {
  readonly columns: readonly string[];
  /** What makes it, with its indexes and triggers. */
  readonly statements: readonly string[];
}

/** Tables by their names. */
export type SchemaTables = ReadonlyMap<string, SchemaTable>;

/** How to do without tables that are not there. */
export type Detour =
  /** The same query, which finds them empty. */
  | { readonly query: string }
  /** It would add a row: these must be made first. */
  | { readonly make: readonly string[] }
  /** It would change or delete rows of one: there are none. */
  | { readonly nothing: true };

/** What late tables are made of. @param db has the newest schema, whole */
export function readLateTables(db: Sql): SchemaTables {
  return readTables(db, LATE_TABLES);
}

/** What all tables of the framework are made of. @param db has the newest schema, whole */
export function readAllTables(db: Sql): SchemaTables {
  const found = db.sql<{ name: string }>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'perdure_%' ORDER BY rowid",
  );
  return readTables(
    db,
    found.map(({ name }) => name),
  );
}

function readTables(db: Sql, names: readonly string[]): SchemaTables {
  const made =
    "SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND sql IS NOT NULL ORDER BY type = 'table' DESC, rowid";
  return new Map(
    names.map((name) => {
      const columns = db.sql<{ name: string }>("SELECT name FROM pragma_table_info(?)", name);
      const statements = db.sql<{ sql: string }>(made, name);
      return [name, { columns: columns.map((one) => one.name), statements: statements.map(({ sql }) => sql) }];
    }),
  );
}

/** The late tables that a database does not have. */
export function absentTables(db: Sql): Set<string> {
  const there = db.sql<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table'");
  const names = new Set(there.map(({ name }) => name));
  return new Set(LATE_TABLES.filter((name) => !names.has(name)));
}

/** The framework's tables that are there and have no rows. */
export function tablesWithoutRows(db: Sql): string[] {
  const there = db.sql<{ name: string }>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'perdure%'",
  );
  return there.map(({ name }) => name).filter((name) => db.sql(`SELECT 1 FROM ${name} LIMIT 1`).length === 0);
}

/** Makes a late table. Call it in the transaction that adds its first row. */
export function makeLateTable(db: Sql, tables: SchemaTables, name: string): void {
  for (const statement of tables.get(name)?.statements ?? []) db.sql(statement);
}

/** Makes an empty database one of the newest schema, without late tables: the same as all steps would, in a fraction of the time. */
export function makeTables(db: Sql, all: SchemaTables): void {
  for (const name of all.keys()) if (!LATE_TABLES.includes(name)) makeLateTable(db, all, name);
  markSchema(db);
}

const NAMES = /\bperdure_\w+/g;
/** The table whose rows a statement changes, and how. */
const CHANGE = /\b(INSERT|UPDATE|DELETE)(?:\s+OR\s+\w+)?(?:\s+(?:INTO|FROM))?\s+(perdure_\w+)/;
const WITH = /^\s*WITH(?:\s+RECURSIVE)?\s/;

/** Statements about rows. */
const ROWS = /^\s*(?:WITH|SELECT|INSERT|UPDATE|DELETE)\b/;
/** What SQLite itself knows of a database. */
const ABOUT_SCHEMA = /\b(?:sqlite|pragma)_/;

/** What a query of this folder is about. */
interface QueryTables {
  readonly names: readonly string[];
  /** It reads or changes rows of these tables, and nothing else of the database. */
  readonly isAboutRows: boolean;
  /** Undefined: it only reads, or makes tables. */
  readonly verb: string | undefined;
  /** Whose rows it changes. */
  readonly target: string;
}

/** Some few hundred, and those that are composed. */
const MAX_KNOWN = 1_000;
const known = new Map<string, QueryTables>();

/** The framework's tables that a query names. */
export function tablesOf(query: string): QueryTables {
  let found = known.get(query);
  if (found !== undefined) return found;
  const [, verb, target = ""] = CHANGE.exec(query) ?? [];
  const isAboutRows = ROWS.test(query) && !ABOUT_SCHEMA.test(query);
  found = { names: [...new Set(query.match(NAMES))], isAboutRows, verb, target };
  if (known.size >= MAX_KNOWN) known.clear();
  known.set(query, found);
  return found;
}

/** How to run a query of this folder on a database without some late tables; undefined when it names none of them. */
export function detour(query: string, tables: SchemaTables, absent: ReadonlySet<string>): Detour | undefined {
  const { names, verb, target } = tablesOf(query);
  const missing = names.filter((name) => absent.has(name));
  if (missing.length === 0) return undefined;
  if (absent.has(target)) return verb === "INSERT" ? { make: [target] } : { nothing: true };
  const empty = missing.map((name) => {
    const columns = tables.get(name)?.columns ?? [];
    return `${name} (${columns.join(", ")}) AS (SELECT ${columns.map(() => "NULL").join(", ")} WHERE 0)`;
  });
  // A name in WITH hides the table of that name.
  if (!WITH.test(query)) return { query: `WITH ${empty.join(", ")} ${query}` };
  return { query: query.replace(WITH, (word) => `${word}${empty.join(", ")}, `) };
}

/**
 * Brings a database, which may be without late tables, to the newest schema. Steps find all tables that their schema had; those
 * that never had a row are gone afterwards. @param lateAfter what late tables are made of in a database that has had these steps
 * @throws PerdureError `database_newer`
 */
export function migrateLate(
  db: Sql,
  lateAfter: (steps: readonly Migration[]) => SchemaTables,
  steps: readonly Migration[] = migrations,
): void {
  const version = schemaVersion(db);
  const newest = steps.at(-1)?.id ?? 0;
  if (version === newest) return;
  if (version >= LATE_SINCE && version < newest) {
    const tables = lateAfter(steps.filter(({ id }) => id <= version));
    const absent = absentTables(db);
    db.tx(() => {
      for (const name of absent) makeLateTable(db, tables, name);
    });
  }
  migrate(db, steps);
  dropUnusedTables(db);
}

/** Drops late tables that have no rows. One that numbers its rows stays once it had any: numbers must never come again. */
export function dropUnusedTables(db: Sql): void {
  const absent = absentTables(db);
  const numbered = new Set(db.sql<{ name: string }>("SELECT name FROM sqlite_sequence").map(({ name }) => name));
  db.tx(() => {
    for (const name of LATE_TABLES) {
      if (absent.has(name) || numbered.has(name)) continue;
      if (db.sql(`SELECT 1 FROM ${name} LIMIT 1`).length === 0) db.sql(`DROP TABLE ${name}`);
    }
  });
}
