import { beforeEach, expect, test } from "vitest";
import { plainSql } from "../../test/support/plain-sql.ts";
import type { Sql } from "../port.ts";
import {
  absentTables,
  detour,
  dropUnusedTables,
  type SchemaTables,
  makeLateTable,
  makeTables,
  migrateLate,
  readAllTables,
  readLateTables,
} from "./late-tables.ts";
import { migrate, migrations } from "./migrations.ts";

function whole(): Sql {
  const db = plainSql();
  migrate(db);
  return db;
}

function thin(): Sql {
  const db = whole();
  dropUnusedTables(db);
  return db;
}

function lateAfter(steps: typeof migrations): SchemaTables {
  const db = plainSql();
  migrate(db, steps);
  return readLateTables(db);
}

let late: SchemaTables;
beforeEach(() => {
  late = readLateTables(whole());
});

test("every late table is made as the steps made it, with its indexes", () => {
  const db = thin();
  expect([...absentTables(db)].sort()).toEqual([...late.keys()].sort());
  for (const name of late.keys()) makeLateTable(db, late, name);
  const schema = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name";
  expect(db.sql(schema)).toEqual(whole().sql(schema));
});

test("an empty database is made as the steps would make it, without late tables", () => {
  const db = plainSql();
  makeTables(db, readAllTables(whole()));
  const schema = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name";
  expect(db.sql(schema)).toEqual(thin().sql(schema));
  const steps = "SELECT id FROM perdure_migration ORDER BY id";
  expect(db.sql(steps)).toEqual(whole().sql(steps));
});

test("nothing that is always there names a late table: without it, it could not be changed", () => {
  const names = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL";
  for (const { name, sql } of thin().sql<{ name: string; sql: string }>(names)) {
    const named = (sql.match(/perdure_\w+/g) ?? []).filter((one) => late.has(one));
    expect(named, name).toEqual([]);
  }
});

test("reads of a late table that is not there find it empty, whatever else they read or change", () => {
  const db = thin();
  db.sql("INSERT INTO perdure_cell (key, value) VALUES ('a', '1'), ('b', '2')");
  const run = (query: string) => {
    const way = detour(query, late, absentTables(db));
    return way !== undefined && "query" in way ? db.sql(way.query) : way;
  };
  expect(run("SELECT count(*) AS n FROM perdure_queue")).toEqual([{ n: 0 }]);
  expect(run("SELECT q.id FROM perdure_queue AS q JOIN perdure_child AS c ON c.seq = q.seq")).toEqual([]);
  const steps = "WITH RECURSIVE n (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM n WHERE at < 3)";
  expect(run(`${steps} SELECT at FROM n WHERE at NOT IN (SELECT seq FROM perdure_child)`)).toHaveLength(3);
  expect(run("DELETE FROM perdure_cell WHERE key NOT IN (SELECT id FROM perdure_queue) AND key = 'a'")).toEqual([]);
  expect(run("INSERT INTO perdure_cell (key, value) SELECT id, 'x' FROM perdure_queue")).toEqual([]);
  expect(run("SELECT key FROM perdure_cell")).toBeUndefined();
  expect(db.sql("SELECT key FROM perdure_cell")).toEqual([{ key: "b" }]);
});

test("who changes or deletes rows of one that is not there changes nothing; who adds one needs it", () => {
  const absent = absentTables(thin());
  for (const query of [
    "UPDATE perdure_queue SET at = ? WHERE seq = ? RETURNING seq",
    "DELETE FROM perdure_queue WHERE seq IN\n (SELECT seq FROM perdure_queue)",
    "WITH one (at) AS (SELECT 1) DELETE FROM perdure_queue WHERE seq IN (SELECT at FROM one)",
  ])
    expect(detour(query, late, absent)).toEqual({ nothing: true });
  for (const query of [
    "INSERT INTO perdure_queue (id) VALUES (?) ON CONFLICT DO UPDATE SET id = excluded.id",
    "INSERT OR IGNORE INTO perdure_queue (id) SELECT id FROM perdure_run",
  ])
    expect(detour(query, late, absent)).toEqual({ make: ["perdure_queue"] });
});

test("a later step finds the tables that its schema had; those without rows are made in their newest shape when they get one", () => {
  const steps = [
    ...migrations,
    {
      id: 1001,
      statements: [
        "ALTER TABLE perdure_queue ADD COLUMN colour TEXT",
        "ALTER TABLE perdure_child ADD COLUMN colour TEXT",
        "INSERT INTO perdure_config (id, value) SELECT 1, count(*) FROM perdure_run",
      ],
    },
    { id: 1002, statements: ["ALTER TABLE perdure_queue ADD COLUMN shape TEXT"] },
  ];
  const db = thin();
  makeLateTable(db, late, "perdure_child");
  db.sql("INSERT INTO perdure_child (class_name, name, created_at) VALUES ('C', 'a', 0)");
  migrateLate(db, lateAfter, steps.slice(0, -1));
  expect(db.sql("SELECT name, colour FROM perdure_child")).toEqual([{ name: "a", colour: null }]);
  expect(db.sql("SELECT value FROM perdure_config")).toEqual([{ value: "0" }]);
  expect([...absentTables(db)]).toContain("perdure_queue");
  migrateLate(db, lateAfter, steps);
  const newest = plainSql();
  migrate(newest, steps);
  makeLateTable(db, readLateTables(newest), "perdure_queue");
  expect(db.sql("SELECT colour, shape FROM perdure_queue")).toEqual([]);
});

test("a table that numbers its rows stays when they are gone: their numbers never come again", () => {
  const db = whole();
  const add = (id: string) => db.sql("INSERT INTO perdure_child (class_name, name, created_at) VALUES ('C', ?, 0)", id);
  add("a");
  db.sql("DELETE FROM perdure_child");
  dropUnusedTables(db);
  add("b");
  expect(db.sql("SELECT seq FROM perdure_child")).toEqual([{ seq: 2 }]);
});
