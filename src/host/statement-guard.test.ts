import { expect, test } from "vitest";
import { guardStatement } from "./statement-guard.ts";

test.each([
  "BEGIN",
  "commit",
  "End",
  "ROLLBACK TO x",
  "SAVEPOINT a",
  "RELEASE a",
  "PRAGMA user_version = 1",
  "ATTACH 'x' AS y",
  "DETACH y",
  "VACUUM INTO 'x'",
  "  \n\tBEGIN",
  "-- a comment\nBEGIN",
  "/* a */ /* b */ BEGIN",
  ";;BEGIN",
])("%j is refused", (query) => {
  expect(() => guardStatement(query)).toThrow(/is not allowed in an agent/);
});

test.each([
  "SELECT 1; SELECT 2",
  "INSERT INTO t VALUES ('a;b'); DROP TABLE t",
  "SELECT 1 /* ; */; -- ;\n SELECT 2",
  "CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; END; DROP TABLE t",
])("%j is more than one statement", (query) => {
  expect(() => guardStatement(query)).toThrow(/One query holds one statement/);
});

test.each([
  "INSERT OR ROLLBACK INTO t VALUES (1)",
  "UPDATE or /* x */ rollback t SET a = 1",
  "CREATE TABLE t (a UNIQUE ON CONFLICT ROLLBACK)",
  "CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT RAISE (ROLLBACK, 'no'); END",
])("%j would end the host's transaction", (query) => {
  expect(() => guardStatement(query)).toThrow(/behind the host's back/);
});

test.each([
  "SELECT 1",
  "SELECT 1; -- that is all\n ;",
  "SELECT ';' AS \"a;b\", [c;d], `e;f` /* ; */ FROM t -- ; and no more",
  "CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; SELECT 2; END;",
  "INSERT INTO t VALUES ('OR ROLLBACK')",
  "SELECT 'BEGIN'",
  "INSERT INTO beginning VALUES (1)",
  "-- BEGIN\nSELECT 1",
  "WITH x AS (SELECT 1) SELECT * FROM x",
  "SELECT * FROM pragma_table_info('t')",
])("%j may run", (query) => {
  expect(() => guardStatement(query)).not.toThrow();
});
