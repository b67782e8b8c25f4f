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
  "SELECT 1",
  "SELECT 'BEGIN'",
  "INSERT INTO beginning VALUES (1)",
  "-- BEGIN\nSELECT 1",
  "WITH x AS (SELECT 1) SELECT * FROM x",
  "SELECT * FROM pragma_table_info('t')",
])("%j may run", (query) => {
  expect(() => guardStatement(query)).not.toThrow();
});
