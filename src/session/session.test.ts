import { manualClock } from "perdure/testing";
import { expect, test } from "vitest";
import { plainSql } from "../../test/support/plain-sql.ts";
import type { UIMessage } from "../message/types.ts";
import type { Session } from "./session.ts";
import { SessionManager } from "./session-manager.ts";

function message(id: string, role: UIMessage["role"] = "user"): UIMessage {
  return { id, role, parts: [{ type: "text", text: `text of ${id}` }] };
}

function ids(messages: readonly UIMessage[]): string {
  return messages.map(({ id }) => id).join(" ");
}

function open(): SessionManager {
  return SessionManager.open({ ...plainSql(), clock: manualClock() });
}

/** `a b c d`, and beside `c`, behind `b`: `x y`. */
function grown(session: Session): Session {
  for (const id of ["a", "b", "c", "d"]) session.appendMessage(message(id));
  session.appendMessages([message("x"), message("y")], { parentId: "b" });
  return session;
}

test("the history is the path to the leaf", () => {
  const session = grown(open().current);
  expect(ids(session.getHistory())).toBe("a b x y");
  expect(ids(session.getHistory("d"))).toBe("a b c d");
  expect(session.currentLeaf).toBe("y");
  expect(session.getPathLength()).toBe(4);
  expect(session.getPathLength("c")).toBe(3);
  expect(ids(session.getBranches("b"))).toBe("c x");
  expect(ids(session.getBranches("y"))).toBe("");
  expect(ids(session.getBranches(null))).toBe("a");
  expect(ids(session.getSiblings("x"))).toBe("c x");
  expect(ids(session.getSiblings("a"))).toBe("a");
  expect(session.getLatestLeaf()?.id).toBe("y");
  expect(session.getLatestLeaf("c")?.id).toBe("d");
  expect(session.getLatestLeaf("a")?.id).toBe("y");
});

test("the history comes in pages", () => {
  const session = open().current;
  const all = Array.from({ length: 300 }, (_, n) => message(`m${n}`));
  session.appendMessages(all);
  expect(session.getHistory()).toEqual(all);
  expect(ids(session.getHistory(undefined, { limit: 3 }))).toBe("m297 m298 m299");
  expect(ids(session.getHistory(undefined, { limit: 2, before: "m297" }))).toBe("m295 m296");
  expect(ids(session.getHistory("m5", { limit: 200 }))).toBe("m0 m1 m2 m3 m4 m5");
  expect(session.getHistory(undefined, { limit: 200 })).toHaveLength(200);
  expect(session.getHistory(undefined, { before: "m0" })).toEqual([]);
});

test("a branch can be gone back to, and stays where it was left", () => {
  const manager = open();
  const session = grown(manager.current);
  expect(session.switchBranch("c")).toBe("d");
  expect(ids(session.getHistory())).toBe("a b c d");
  expect(ids(manager.of("main").getHistory())).toBe("a b c d");
  session.appendMessage(message("e"));
  expect(session.switchBranch("x")).toBe("y");
  expect(session.switchBranch("c")).toBe("e");
});

test("a conversation may begin more than once", () => {
  const session = grown(open().current);
  session.appendMessage(message("other"), null);
  expect(ids(session.getHistory())).toBe("other");
  expect(ids(session.getBranches(null))).toBe("a other");
  expect(ids(session.getSiblings("a"))).toBe("a other");
});

test("neither ids nor the clock give the order", async () => {
  const clock = manualClock();
  const session = SessionManager.open({ ...plainSql(), clock }).current;
  session.appendMessage(message("z"));
  session.appendMessage(message("a"));
  await clock.set(clock.now() - 3_600_000);
  session.appendMessage(message("m"));
  session.appendMessage(message("b"), "z");
  session.appendMessage(message("aa"), "z");
  expect(ids(session.getHistory())).toBe("z aa");
  expect(ids(session.getBranches("z"))).toBe("a b aa");
  expect(session.switchBranch("a")).toBe("m");
  expect(ids(session.getHistory())).toBe("z a m");
  expect(session.getLatestLeaf("z")?.id).toBe("aa");
});

test("who writes behind something that is no longer the end is told so", () => {
  const session = open().current;
  session.appendMessage(message("a"), undefined, { expect: null });
  const seen = session.currentLeaf;
  session.appendMessage(message("b"), undefined, { expect: seen });
  expect(() => session.appendMessage(message("c"), undefined, { expect: seen })).toThrow(
    expect.objectContaining({ code: "conflict" }),
  );
  expect(() => session.appendMessages([message("c")], { expect: null })).toThrow(
    expect.objectContaining({ code: "conflict" }),
  );
  expect(ids(session.getHistory())).toBe("a b");
});

test("several messages are added together or not at all", () => {
  const manager = open();
  manager.create({ id: "other" }).appendMessage(message("taken"));
  const session = manager.current;
  expect(() => session.appendMessages([message("a"), message("taken")])).toThrow(
    expect.objectContaining({ code: "conflict" }),
  );
  expect(session.getHistory()).toEqual([]);
  expect(session.currentLeaf).toBeNull();
});

test("a session is named after what a user says first in it", () => {
  const manager = open();
  const { current } = manager;
  current.appendMessage(message("hello", "assistant"));
  expect(current.name).toBeNull();
  current.appendMessages([message("a"), message("b")]);
  expect(current.info).toMatchObject({ name: "text of a", namedBy: "derived" });
  expect(manager.of(manager.openView("main")).name).toBeNull();
});

test("a message that is there is left as it is", () => {
  const session = grown(open().current);
  const stored = session.appendMessage({ ...message("a"), parts: [{ type: "text", text: "other" }] });
  expect(stored).toEqual(message("a"));
  expect(session.currentLeaf).toBe("y");
});

test("an unknown message is an error wherever it is named", () => {
  const manager = open();
  const session = grown(manager.current);
  manager.create({ id: "two" }).appendMessage(message("elsewhere"));
  const unknown = expect.objectContaining({ code: "not_found" });
  for (const id of ["nobody", "elsewhere"]) {
    expect(() => session.getHistory(id)).toThrow(unknown);
    expect(() => session.getBranches(id)).toThrow(unknown);
    expect(() => session.switchBranch(id)).toThrow(unknown);
    expect(() => session.appendMessage(message("n"), id)).toThrow(unknown);
    expect(() => session.updateMessage(message(id))).toThrow(unknown);
    expect(() => session.pin(id)).toThrow(unknown);
    expect(() => session.fork({ at: id })).toThrow(unknown);
    expect(session.getMessage(id)).toBeUndefined();
  }
  expect(ids(session.getHistory())).toBe("a b x y");
});

test("messages can be changed, deleted and pinned", () => {
  const session = grown(open().current);
  session.updateMessage({ ...message("b"), parts: [{ type: "text", text: "new" }] });
  expect(session.getMessage("b")?.parts).toEqual([{ type: "text", text: "new" }]);
  session.pin("b");
  expect(session.isPinned("b")).toBe(true);
  session.deleteMessages(["x", "nobody"]);
  expect(ids(session.getHistory())).toBe("a b y");
  expect(ids(session.getBranches("b"))).toBe("c y");
  session.unpin("b");
  expect(session.isPinned("b")).toBe(false);
  session.clearMessages();
  expect(session.getHistory()).toEqual([]);
  expect(session.getMessage("c")).toBeUndefined();
});

test("a fork is a session of its own that shares what was said", () => {
  const manager = open();
  const main = grown(manager.current);
  main.pin("a");
  const fork = main.fork({ at: "c", name: "Other way" });
  expect(ids(fork.getHistory())).toBe("a b c");
  expect(fork.info).toMatchObject({ name: "Other way", namedBy: "user", parent: "main", forkedAt: "c" });
  expect(fork.isPinned("a")).toBe(true);
  fork.appendMessage(message("f"));
  main.appendMessage(message("z"));
  expect(ids(fork.getHistory())).toBe("a b c f");
  expect(ids(main.getHistory())).toBe("a b x y z");
  expect(main.getMessage("f")).toBeUndefined();
  // Of a branch that both have, each comes to its own end.
  expect(main.switchBranch("c")).toBe("d");
  expect(fork.switchBranch("b")).toBe("f");
});

test("a fork costs one row, and none of the messages", () => {
  const sql = plainSql();
  const manager = SessionManager.open(sql);
  manager.current.appendMessages(Array.from({ length: 500 }, (_, n) => message(`m${n}`)));
  const rows = () => sql.sql<{ n: number }>("SELECT count(*) AS n FROM perdure_message")[0]?.n;
  const fork = manager.fork("main");
  expect(rows()).toBe(500);
  expect(fork.getPathLength()).toBe(500);
});

test("what a fork shows outlives the session that it came from", () => {
  const manager = open();
  const main = grown(manager.current);
  const fork = main.fork({ at: "c" });
  fork.appendMessage(message("f"));
  main.clearMessages();
  expect(main.getHistory()).toEqual([]);
  expect(ids(fork.getHistory())).toBe("a b c f");
  expect(fork.getMessage("x")).toBeUndefined();
  expect(manager.delete(fork.id)).toBe(true);
  expect(manager.get(fork.id)).toBeUndefined();
  expect(main.getMessage("a")).toBeUndefined();
});

test("a fork takes its context blocks along, and each writes its own from then on", async () => {
  const manager = SessionManager.open(plainSql(), (session) => session.withContext("memory").withCachedPrompt());
  const main = manager.current;
  await main.replaceContextBlock("memory", "likes tea");
  const fork = main.fork();
  await fork.appendContextBlock("memory", "and cake");
  expect(main.getContextBlock("memory")?.content).toBe("likes tea");
  expect(fork.getContextBlock("memory")?.content).toBe("likes tea\nand cake");
  manager.delete(fork.id);
  const again = manager.create({ id: fork.id });
  expect(again.getContextBlock("memory")?.content).toBe("");
});

test("what code configures is asked for once per session, before it is used", async () => {
  const asked: string[] = [];
  const manager = SessionManager.open(plainSql(), async (session) => {
    await Promise.resolve();
    asked.push(session.id);
    session.withContext("notes", { initial: "empty" }).compactAfter(1_000).withSearch("agent");
  });
  expect(await manager.current.systemPrompt()).toContain("empty");
  await manager.ready("main");
  expect(asked).toEqual(["main"]);
  expect(manager.current.settings).toEqual({ compactAfter: 1_000, searchScope: "agent" });
  const view = await manager.ready(manager.openView("main"));
  expect(view.settings).toEqual(manager.current.settings);
  expect(view.getContextBlocks()).toHaveLength(1);
  expect(asked).toEqual(["main"]);
});

test("if that fails, who needs the session hears of it, and the next one tries again", async () => {
  let tries = 0;
  const manager = SessionManager.open(plainSql(), async () => {
    if (++tries === 1) throw new Error("not yet");
  });
  await expect(manager.ready("main")).rejects.toThrow("not yet");
  await expect(manager.ready("main")).resolves.toMatchObject({ id: "main" });
  const sync = SessionManager.open(plainSql(), () => {
    if (++tries === 3) throw new Error("not now");
  });
  expect(() => sync.current).toThrow("not now");
  expect(sync.current.id).toBe("main");
});

test("code that configures a session may ask for it", () => {
  const manager: SessionManager = SessionManager.open(plainSql(), (session) => {
    expect(manager.current).toBe(session);
  });
  expect(manager.current.id).toBe("main");
});

test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])("compactAfter(%j) makes no sense", (tokens) => {
  expect(() => open().current.compactAfter(tokens)).toThrow(expect.objectContaining({ code: "bad_config" }));
});
