import { expect, test } from "vitest";
import { checkSql } from "../../scripts/check-sql.ts";
import { plant } from "./plant.ts";

test.each([
  '"SELECT * FROM t"',
  "`INSERT INTO t VALUES (${1})`",
  "'UPDATE t SET a = 1'",
  '"DELETE FROM t"',
  "`\n  CREATE TABLE t (a)\n`",
  '"WITH x AS (SELECT 1) SELECT * FROM x"',
  '"select a from t where b = 1"',
  "`delete from ${'t'} `",
  '"insert or ignore into t values (1)"',
])("SQL outside of store fails: %s", (literal) => {
  const violations = checkSql(plant({ "src/agent/a.ts": `export const q = ${literal};\n` }));
  expect(violations).toHaveLength(1);
  expect(violations[0]).toMatch(/^src\/agent\/a\.ts:1: SQL outside of src\/store/);
});

test("the Node host may hold SQL only in the files of its own database", () => {
  const sql = 'export const q = "SELECT 1";\n';
  const root = plant({
    "src/host/node/host-db-alarms.ts": sql,
    "src/host/node/serve.ts": sql,
    "src/host/host-db.ts": sql,
  });
  expect(checkSql(root).map((violation) => violation.split(":")[0])).toEqual([
    "src/host/host-db.ts",
    "src/host/node/serve.ts",
  ]);
});

test("store, tests, conformance suites, comments and plain words pass", () => {
  const sql = 'export const q = "SELECT 1";\n';
  const root = plant({
    "src/store/a.ts": sql,
    "src/agent/a.test.ts": sql,
    "src/testing/conformance.ts": sql,
    "src/agent/b.ts":
      '// SELECT * FROM t\nexport const s = "Select one from the list, or update it.";\nexport const r = /SELECT/;\n',
  });
  expect(checkSql(root)).toEqual([]);
});

test("a value bound to LIMIT itself fails, also in store", () => {
  const root = plant({
    "src/store/a.ts":
      'export const q = "SELECT 1 FROM t LIMIT ?";\nexport const r = "SELECT 1 FROM t LIMIT (SELECT ?)";\n',
    "src/store/b.ts": "export const q = `SELECT 1 FROM t LIMIT -1 OFFSET ?`;\n",
  });
  expect(checkSql(root)).toEqual([
    "src/store/a.ts:1: a value bound to LIMIT itself, not (SELECT ?)",
    "src/store/b.ts:1: a value bound to LIMIT itself, not (SELECT ?)",
  ]);
});
