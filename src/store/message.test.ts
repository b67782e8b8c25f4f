import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import type { Sql, SqlValue } from "../port.ts";
import {
  deleteBranch,
  deleteMessage,
  deleteSessionMessages,
  firstMessages,
  insertMessage,
  messagesBehind,
  messagesUp,
  newestLeafUnder,
  placesUp,
  readMessage,
  rolesOf,
  siblingsOf,
  standsAbove,
} from "./message.ts";
import { migrate, migrations } from "./migrations.ts";
import { insertSession, listSessionLines, readSession, setLeaf } from "./session.ts";

function plainSql(): Sql {
  const db = new Database(":memory:");
  const sql: Sql = {
    sql<T>(query: string, ...args: SqlValue[]) {
      const statement = db.prepare(query);
      return (statement.reader ? statement.all(...args) : (statement.run(...args), [])) as T[];
    },
    tx: (work) => db.transaction(work)(),
  };
  return sql;
}

/** Messages by name, each behind another: `"a b c"` is a line, `"b>d e"` hangs on b. */
function grow(db: Sql, ...lines: string[]): Map<string, number> {
  const seqs = new Map<string, number>();
  for (const line of lines) {
    const [on, rest] = line.includes(">") ? (line.split(">") as [string, string]) : [undefined, line];
    const [owner, names] = rest.includes(":") ? (rest.split(":") as [string, string]) : ["main", rest];
    let parent = on === undefined ? null : (seqs.get(on) ?? null);
    for (const id of names.split(" ")) {
      parent = insertMessage(db, { id, session: owner, parent, role: "user", body: `{"id":"${id}"}`, createdAt: 0 });
      seqs.set(id, parent);
    }
  }
  return seqs;
}

const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id).join(" ");

test("a list of before becomes a line of the tree, in its order, and its last request is kept", () => {
  const db = plainSql();
  migrate(
    db,
    migrations.filter(({ id }) => id < 5),
  );
  // The order was that of the numbers, whatever the clock said.
  for (const [id, at] of [
    ["a", 300],
    ["b", 100],
    ["c", 200],
  ] as const)
    db.sql("INSERT INTO perdure_message (id, role, body, created_at) VALUES (?, 'user', '{}', ?)", id, at);
  db.sql("DELETE FROM perdure_message WHERE id = 'b'");
  db.sql("INSERT INTO perdure_message (id, role, body, created_at) VALUES ('b', 'user', '{}', 100)");
  db.sql("INSERT INTO perdure_chat (id, body, client_tools) VALUES (1, '{\"x\":1}', '[]')");
  db.sql(
    `INSERT INTO perdure_turn (id, status, trigger, continuation, message_ids, not_before, created_at)
     VALUES ('t', 'accepted', 'submit', 0, '[]', 0, 0)`,
  );
  migrate(db);
  const main = readSession(db, "main");
  expect(main).toMatchObject({ current: 1, body: '{"x":1}', clientTools: "[]", createdAt: 100, updatedAt: 300 });
  expect(idsOf(messagesUp(db, main?.leaf ?? 0, 10))).toBe("b c a");
  expect(db.sql("SELECT session FROM perdure_turn")).toEqual([{ session: "main" }]);
  expect(db.sql("SELECT name FROM sqlite_master WHERE name = 'perdure_chat'")).toEqual([]);
  migrate(db);
  expect(idsOf(messagesUp(db, main?.leaf ?? 0, 10))).toBe("b c a");
});

test("an agent that said nothing gets no session by it", () => {
  const db = plainSql();
  migrate(
    db,
    migrations.filter(({ id }) => id < 5),
  );
  migrate(db);
  expect(listSessionLines(db, 9)).toEqual([]);
});

test("the way up, the branches behind, the newest leaf", async () => {
  const { host: db } = await probeHost();
  const at = grow(db, "a b c d", "b>x y", "x>z");
  const seq = (id: string) => at.get(id) ?? 0;
  expect(idsOf(messagesUp(db, seq("z"), 10))).toBe("z x b a");
  expect(idsOf(placesUp(db, seq("d"), 2))).toBe("d c");
  expect(messagesUp(db, 999, 10)).toEqual([]);
  expect(idsOf(messagesBehind(db, seq("b")))).toBe("c x");
  expect(idsOf(messagesBehind(db, seq("x")))).toBe("y z");
  expect(newestLeafUnder(db, seq("a"), "main")).toBe(seq("z"));
  expect(newestLeafUnder(db, seq("c"), "main")).toBe(seq("d"));
  expect(standsAbove(db, seq("b"), seq("z"))).toBe(true);
  expect(standsAbove(db, seq("z"), seq("z"))).toBe(true);
  expect(standsAbove(db, seq("c"), seq("z"))).toBe(false);
  expect(rolesOf(db, ["a", "nobody", "z"])).toEqual(
    new Map([
      ["a", "user"],
      ["z", "user"],
    ]),
  );
});

test("siblings are told in the order in which they were said; the only one of its place has none", async () => {
  const { host: db } = await probeHost();
  const at = grow(db, "a b c", "b>x", "z", "other:o");
  const seq = (id: string) => at.get(id) ?? 0;
  const of = (...ids: string[]) =>
    siblingsOf(db, ids.map(seq), "main").map((row) => `${row.of === seq("a") ? "a" : "?"}:${row.id}`);
  expect(siblingsOf(db, [seq("x")], "main").map(({ id }) => id)).toEqual(["c", "x"]);
  expect(siblingsOf(db, [seq("b")], "main")).toEqual([]);
  // First messages are siblings within their session alone.
  expect(of("a")).toEqual(["a:a", "a:z"]);
  expect(siblingsOf(db, [seq("o")], "other")).toEqual([]);
  expect(idsOf(firstMessages(db, "main"))).toBe("a z");
});

test("a message that goes lets what stood behind it move up, and a session that ended with it ends before it", async () => {
  const { host: db } = await probeHost();
  const at = grow(db, "a b c", "b>x");
  setLeaf(db, "main", at.get("b") ?? 0, 0);
  deleteMessage(db, at.get("b") ?? 0, at.get("a") ?? 0);
  expect(idsOf(messagesUp(db, at.get("c") ?? 0, 9))).toBe("c a");
  expect(idsOf(messagesUp(db, at.get("x") ?? 0, 9))).toBe("x a");
  expect(readSession(db, "main")?.leaf).toBe(at.get("a"));
});

test("a branch goes as a whole, unless a session ends in it", async () => {
  const { host: db } = await probeHost();
  const at = grow(db, "a b c", "b>x y", "x>z");
  insertSession(db, { id: "fork", leaf: at.get("z") ?? 0 }, 0);
  expect(deleteBranch(db, at.get("x") ?? 0)).toEqual([]);
  setLeaf(db, "fork", at.get("c") ?? 0, 0);
  expect(
    idsOf(deleteBranch(db, at.get("x") ?? 0))
      .split(" ")
      .sort(),
  ).toEqual(["x", "y", "z"]);
  expect(readMessage(db, "c")).toBeDefined();
});

test("deleting what a session said keeps what others show, and gives it to them", async () => {
  const { host: db } = await probeHost();
  const at = grow(db, "a b c d", "b>fork:x y");
  setLeaf(db, "main", at.get("d") ?? 0, 0);
  insertSession(db, { id: "fork", leaf: at.get("y") ?? 0, parent: "main", forkAt: at.get("b") ?? 0 }, 0);
  insertSession(db, { id: "view", leaf: at.get("c") ?? 0, viewOf: "main" }, 0);
  expect(idsOf(deleteSessionMessages(db, "main")).split(" ").sort()).toEqual(["c", "d"]);
  expect(idsOf(messagesUp(db, at.get("y") ?? 0, 9))).toBe("y x b a");
  expect(readMessage(db, "a")?.session).toBe("fork");
  expect(idsOf(deleteSessionMessages(db, "fork")).split(" ").sort()).toEqual(["a", "b", "x", "y"]);
});

test("a fork that has said nothing yet keeps what it shows", async () => {
  const { host: db } = await probeHost();
  const at = grow(db, "a b c");
  insertSession(db, { id: "fork", leaf: at.get("b") ?? 0 }, 0);
  expect(idsOf(deleteSessionMessages(db, "main"))).toBe("c");
  expect(idsOf(messagesUp(db, at.get("b") ?? 0, 9))).toBe("b a");
});
