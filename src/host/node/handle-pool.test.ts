import { afterEach, expect, test } from "vitest";
import { RESERVED_PREFIX } from "../../store/migrations.ts";
import { Handle } from "./handle-pool.ts";
import { openEmpty } from "./open-sqlite.ts";

const empty = new Handle(openEmpty());
const opened: Handle[] = [];
afterEach(() => {
  for (const { db } of opened.splice(0)) db.close();
});

function open(filled?: readonly string[]): Handle {
  const handle = new Handle(openEmpty(), empty, filled);
  opened.push(handle);
  return handle;
}

/** As an agent's database runs it. @returns its rows, or why there was nothing to run */
function run(handle: Handle, query: string, ...args: string[]): unknown {
  let prepared = handle.prepare(query);
  if (prepared === "first row") {
    handle.makeTables(query);
    prepared = handle.prepare(query);
  }
  if (typeof prepared === "string") return prepared;
  return prepared.reader ? prepared.all(...args) : prepared.run(...args).changes;
}

const CELLS = "SELECT key FROM perdure_cell ORDER BY key";
const BOTH = "SELECT c.key FROM perdure_cell AS c LEFT JOIN perdure_queue AS q ON q.id = c.key";
const ADD = "INSERT INTO perdure_cell (key, value) VALUES (?, 'x')";

test("what a new database is asked before it has rows is prepared once for all of them", () => {
  const [one, other] = [open([]), open([])];
  for (const query of [CELLS, BOTH, "SELECT seq FROM perdure_queue"]) {
    expect(one.prepare(query)).toBe(other.prepare(query));
    expect(run(one, query)).toEqual([]);
  }
  expect(run(one, "UPDATE perdure_cell SET value = 'y' RETURNING key")).toBe("nothing");
  expect(run(one, "DELETE FROM perdure_queue")).toBe("nothing");
});

test("the first row of a table is found by all that was asked before, also when it was undone and came again", () => {
  const handle = open([]);
  const change = "UPDATE perdure_cell SET value = 'y' WHERE key = ? RETURNING key";
  expect([run(handle, CELLS), run(handle, BOTH), run(handle, change, "a")]).toEqual([[], [], "nothing"]);
  handle.control("BEGIN").run();
  expect(run(handle, ADD, "a")).toBe(1);
  expect(run(handle, CELLS)).toEqual([{ key: "a" }]);
  handle.undone();
  handle.control("ROLLBACK").run();
  expect(run(handle, CELLS)).toEqual([]);
  run(handle, ADD, "a");
  expect([run(handle, CELLS), run(handle, BOTH)]).toEqual([[{ key: "a" }], [{ key: "a" }]]);
  expect(run(handle, change, "a")).toEqual([{ key: "a" }]);
  expect(run(handle, "DELETE FROM perdure_cell")).toBe(1);
  // Nobody else has seen any of it.
  expect(run(open([]), CELLS)).toEqual([]);
});

test("rows that a late table gets with the table are found by all that was asked before", () => {
  const handle = open([]);
  const config = "SELECT value FROM perdure_config";
  const joined = "SELECT o.value FROM perdure_config AS o LEFT JOIN perdure_cell AS c ON c.key = o.value";
  expect([run(handle, config), run(handle, joined)]).toEqual([[], []]);
  handle.control("BEGIN").run();
  run(handle, "INSERT INTO perdure_config (id, value) VALUES (1, 'a')");
  expect([run(handle, config), run(handle, joined)]).toEqual([[{ value: "a" }], [{ value: "a" }]]);
  handle.undone();
  handle.control("ROLLBACK").run();
  expect([run(handle, config), run(handle, joined)]).toEqual([[], []]);
});

test("a table that has rows from the beginning, and a database that is not new, are asked themselves", () => {
  const filled = open(["perdure_cell"]);
  filled.db.exec("INSERT INTO perdure_cell (key, value) VALUES ('a', 'x')");
  expect(run(filled, CELLS)).toEqual([{ key: "a" }]);
  const old = open();
  old.db.exec("INSERT INTO perdure_cell (key, value) VALUES ('a', 'x')");
  expect(run(old, CELLS)).toEqual([{ key: "a" }]);
  // A late table that is not there is empty in those as well.
  expect(old.prepare("SELECT seq FROM perdure_queue")).toBe(empty.prepare("SELECT seq FROM perdure_queue"));
});

test("what is about the database itself, or about tables of the app, is asked of the agent's own", () => {
  const handle = open([]);
  handle.db.exec("CREATE TABLE note (text TEXT)");
  handle.db.exec("INSERT INTO note VALUES ('a')");
  expect(run(handle, "SELECT text FROM note")).toEqual([{ text: "a" }]);
  const tables = "SELECT count(*) AS n FROM sqlite_schema WHERE name = 'note' AND name <> 'perdure_cell'";
  expect(run(handle, tables)).toEqual([{ n: 1 }]);
  const trigger = `CREATE TRIGGER ${RESERVED_PREFIX}gone AFTER DELETE ON perdure_message BEGIN DELETE FROM perdure_cell; END`;
  run(handle, trigger);
  expect(handle.db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").pluck().all()).toContain(
    `${RESERVED_PREFIX}gone`,
  );
});
