import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { manualClock } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { plainSql } from "../../test/support/plain-sql.ts";
import type { UIMessage } from "../message/types.ts";
import { insertTurn } from "../store/turn.ts";
import { SessionManager } from "./session-manager.ts";
import { MAX_VIEWS } from "./session-changes.ts";

function message(id: string): UIMessage {
  return { id, role: "user", parts: [{ type: "text", text: `text of ${id}` }] };
}

function ids(messages: readonly UIMessage[]): string {
  return messages.map(({ id }) => id).join(" ");
}

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "perdure-sessions-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, "sessions.db");
}

const notFound = expect.objectContaining({ code: "not_found" });

test("sessions are made, listed, renamed, switched and deleted", async () => {
  const clock = manualClock();
  const manager = SessionManager.open({ ...plainSql(), clock });
  expect(manager.list()).toEqual([]);
  expect(manager.currentId).toBe("main");
  const one = manager.create({ name: "One", subject: "ann" });
  await clock.advance(1);
  const two = manager.create({ id: "two" });
  expect(manager.list().map(({ id }) => id)).toEqual(["two", one.id]);
  expect(manager.info(one.id)).toMatchObject({ name: "One", namedBy: "user", subject: "ann", current: false });
  expect(two.name).toBeNull();
  manager.rename("two", "  Second\n one ");
  expect(two.info).toMatchObject({ name: "Second one", namedBy: "user" });
  expect(manager.switch("two").id).toBe("two");
  expect(manager.current.id).toBe("two");
  manager.appendMessage("two", message("a"));
  expect(manager.delete("two")).toBe(true);
  expect(manager.delete("two")).toBe(false);
  // The one that is left.
  expect(manager.currentId).toBe(one.id);
  expect(manager.delete(one.id)).toBe(true);
  expect(manager.currentId).toBe("main");
  expect(() => two.getHistory()).toThrow(notFound);
});

test("the list comes in pages", async () => {
  const clock = manualClock();
  const manager = SessionManager.open({ ...plainSql(), clock });
  for (let n = 0; n < 5; n++) {
    // Two of them in the same millisecond.
    if (n !== 2) await clock.advance(1);
    manager.create({ id: `s${n}` });
  }
  const first = manager.list({ limit: 2 });
  const rest = manager.list({ limit: 10, after: first[1]?.id ?? "" });
  expect([...first, ...rest].map(({ id }) => id)).toEqual(["s4", "s3", "s2", "s1", "s0"]);
});

test.each(["", "a b", "a/b", "a:b", "x".repeat(129)])("%j is no id of a session", (id) => {
  expect(() => SessionManager.open(plainSql()).create({ id })).toThrow(expect.objectContaining({ code: "bad_input" }));
});

test.each(["", "  \n", "x".repeat(201)])("%j is no name of a session", (name) => {
  const manager = SessionManager.open(plainSql());
  const bad = expect.objectContaining({ code: "bad_input" });
  expect(() => manager.create({ name })).toThrow(bad);
  expect(() => manager.rename("main", name)).toThrow(bad);
  expect(manager.list()).toEqual([]);
});

test("an id stands for one session", () => {
  const manager = SessionManager.open(plainSql());
  manager.create({ id: "one" });
  const taken = expect.objectContaining({ code: "conflict" });
  expect(() => manager.create({ id: "one" })).toThrow(taken);
  expect(() => manager.create({ id: "main" })).toThrow(taken);
  expect(() => manager.fork("main", { id: "one" })).toThrow(taken);
});

test("a session that is not there is an error", () => {
  const manager = SessionManager.open(plainSql());
  expect(manager.get("none")).toBeUndefined();
  for (const use of [
    () => manager.of("none"),
    () => manager.info("none"),
    () => manager.switch("none"),
    () => manager.rename("none", "x"),
    () => manager.clear("none"),
    () => manager.fork("none"),
    () => manager.openView("none"),
    () => manager.usage("none"),
    () => manager.appendMessage("none", message("a")),
  ])
    expect(use).toThrow(notFound);
  expect(manager.delete("none")).toBe(false);
});

test("the first session is there before anybody speaks", () => {
  const manager = SessionManager.open(plainSql());
  expect(manager.current.getHistory()).toEqual([]);
  expect(manager.current.currentLeaf).toBeNull();
  expect(manager.info("main")).toMatchObject({ id: "main", name: null, current: true });
  manager.rename("main", "Home");
  expect(manager.list().map(({ name }) => name)).toEqual(["Home"]);
  manager.create({ id: "b" });
  manager.switch("b");
  expect(manager.info("main").current).toBe(false);
  manager.switch("main");
  expect(manager.list().find(({ current }) => current)?.id).toBe("main");
});

test("all of it is stored", () => {
  const file = newFile();
  const before = SessionManager.open(plainSql(file));
  before.current.appendMessages([message("a"), message("b")]);
  const fork = before.fork("main", { at: "a", name: "Fork" });
  before.switch(fork.id);
  fork.appendMessage(message("c"));
  before.of("main").pin("b");
  const after = SessionManager.open(plainSql(file));
  expect(after.current.id).toBe(fork.id);
  expect(ids(after.current.getHistory())).toBe("a c");
  expect(after.of("main").isPinned("b")).toBe(true);
  expect(after.info(fork.id)).toMatchObject({ name: "Fork", parent: "main", forkedAt: "a", current: true });
});

test("two writers on one database do not interleave unnoticed", () => {
  const file = newFile();
  const one = SessionManager.open(plainSql(file)).current;
  const two = SessionManager.open(plainSql(file)).current;
  one.appendMessage(message("a"));
  const leaf = one.currentLeaf;
  two.appendMessage(message("b"), undefined, { expect: leaf });
  expect(() => one.appendMessage(message("c"), undefined, { expect: leaf })).toThrow(
    expect.objectContaining({ code: "conflict" }),
  );
  // Without a word on what it expects, it goes behind what is there.
  one.appendMessage(message("c"));
  expect(ids(two.getHistory())).toBe("a b c");
});

test("a view has a place of its own in the same session", () => {
  const manager = SessionManager.open(plainSql());
  const main = manager.current;
  main.appendMessages([message("a"), message("b")]);
  main.appendMessage(message("c"), "a");
  const id = manager.openView("main", "b");
  const view = manager.of(id);
  expect(ids(view.getHistory())).toBe("a b");
  expect(manager.list().map((info) => info.id)).toEqual(["main"]);
  expect(manager.ownerOf(id)).toBe("main");
  expect(view.info.viewOf).toBe("main");
  view.appendMessage(message("d"));
  expect(ids(main.getHistory())).toBe("a c");
  expect(main.switchBranch("b")).toBe("d");
  expect(() => manager.switch(id)).toThrow(expect.objectContaining({ code: "bad_input" }));
  manager.rename(id, "Both");
  expect(main.name).toBe("Both");
  // A view of a view is one of the session; a fork of it, a session.
  expect(manager.info(manager.openView(id)).viewOf).toBe("main");
  const fork = manager.fork(id);
  expect(fork.info).toMatchObject({ parent: "main", viewOf: null });
  expect(ids(fork.getHistory())).toBe("a b d");
  expect(manager.closeView(id)).toBe(true);
  expect(manager.closeView(id)).toBe(false);
  expect(manager.closeView("main")).toBe(false);
  expect(ids(main.getHistory())).toBe("a b d");
});

test("views end with their session, and are cleared with it", () => {
  const manager = SessionManager.open(plainSql());
  const one = manager.create({ id: "one" });
  one.appendMessages([message("a"), message("b")]);
  const view = manager.of(manager.openView("one", "a"));
  view.clearMessages();
  expect(one.getHistory()).toEqual([]);
  expect(view.getHistory()).toEqual([]);
  view.appendMessage(message("c"));
  expect(ids(view.getHistory())).toBe("c");
  manager.delete("one");
  expect(manager.get(view.id)).toBeUndefined();
});

test("a session has so many views and no more; those that a turn is under way in stay", async () => {
  const clock = manualClock();
  const sql = plainSql();
  const manager = SessionManager.open({ ...sql, clock });
  manager.current.appendMessage(message("a"));
  const oldest = manager.openView("main");
  const busy = { id: "t", status: "accepted", trigger: "submit", continuation: 0, messageIds: "[]" } as const;
  insertTurn(sql, { ...busy, body: null, clientTools: null, notBefore: 0, createdAt: 0, session: oldest });
  await clock.advance(1);
  const second = manager.openView("main");
  for (let n = 0; n < MAX_VIEWS; n++) {
    await clock.advance(1);
    manager.openView("main");
  }
  const [row] = sql.sql<{ n: number }>("SELECT count(*) AS n FROM perdure_session WHERE view_of = 'main'");
  expect(row?.n).toBe(MAX_VIEWS + 1);
  expect(manager.get(oldest)).toBeDefined();
  expect(manager.get(second)).toBeUndefined();
});

test("a branch is not left while a turn is under way on it", () => {
  const sql = plainSql();
  const manager = SessionManager.open(sql);
  const main = manager.current;
  main.appendMessages([message("a"), message("b")]);
  main.appendMessage(message("c"), "a");
  const turn = { id: "t", status: "accepted", trigger: "submit", continuation: 0, messageIds: '["c"]' } as const;
  insertTurn(sql, { ...turn, body: null, clientTools: null, notBefore: 0, createdAt: 0, session: "main" });
  const busy = expect.objectContaining({ code: "bad_state" });
  expect(() => main.switchBranch("b")).toThrow(busy);
  expect(() => main.appendMessage(message("d"), "b")).toThrow(busy);
  // Where it is, it may be added to; and others may look elsewhere.
  main.appendMessage(message("e"), "c");
  expect(main.switchBranch("c")).toBe("e");
  expect(ids(manager.of(manager.openView("main", "b")).getHistory())).toBe("a b");
  expect(ids(main.getHistory())).toBe("a c e");
});

test("search and usage work without an agent", async () => {
  const manager = SessionManager.open(plainSql());
  manager.current.appendMessage(message("a"));
  const other = manager.create({ id: "other" });
  other.appendMessage({ ...message("b"), parts: [{ type: "text", text: "lighthouse" }] });
  expect((await manager.search("lighthouse")).map(({ messageId }) => messageId)).toEqual(["b"]);
  expect(await manager.search("lighthouse", { session: "main" })).toEqual([]);
  expect(manager.usage("main")).toMatchObject({ calls: 0, cost: 0 });
});
