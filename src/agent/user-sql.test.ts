import { expect, test } from "vitest";
import type { Sql, SqlValue } from "../port.ts";
import type { SqlParameter } from "./user-sql.ts";
import { userSql } from "./user-sql.ts";

/** Remembers what was run. */
function setUp() {
  const ran: { query: string; args: SqlValue[] }[] = [];
  const db: Sql = {
    sql: (query, ...args) => {
      ran.push({ query, args });
      return [];
    },
    tx: (work) => work(),
  };
  const sql = (strings: TemplateStringsArray, ...values: SqlParameter[]) => userSql(db, strings, values);
  return { ran, sql };
}

test("values are bound, never pasted in", () => {
  const { ran, sql } = setUp();
  sql`SELECT * FROM note WHERE a = ${"x'; DROP TABLE note"} AND b = ${1.5} AND c IS ${null}`;
  expect(ran).toEqual([
    { query: "SELECT * FROM note WHERE a = ? AND b = ? AND c IS ?", args: ["x'; DROP TABLE note", 1.5, null] },
  ]);
});

test("booleans are stored as numbers, bytes as they are", () => {
  const { ran, sql } = setUp();
  const bytes = new Uint8Array([1]);
  sql`SELECT ${true}, ${false}, ${bytes}`;
  expect(ran[0]?.args).toEqual([1, 0, bytes]);
});

test.each([undefined, {}, [], new Date(0), 5n, () => 1, Symbol("s")])("%s cannot be stored", (value) => {
  const { ran, sql } = setUp();
  expect(() => sql`SELECT ${value as unknown as string}`).toThrow(/SQLite cannot store a value of type/);
  expect(ran).toEqual([]);
});

test("the framework's names are refused in the text, in any case, and are fine as values", () => {
  const { ran, sql } = setUp();
  const attempts = [
    () => sql`SELECT * FROM perdure_state`,
    () => sql`DROP TABLE "PERDURE_state"`,
    () => sql`CREATE TABLE perdure_mine (x)`,
  ];
  for (const attempt of attempts) {
    expect(attempt).toThrow(/belong to the framework/);
    // The second time the text is known: it must be refused all the same.
    expect(attempt).toThrow(/belong to the framework/);
  }
  expect(ran).toEqual([]);
  sql`SELECT ${"perdure_state"}`;
  expect(ran).toHaveLength(1);
});
