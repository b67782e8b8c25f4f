import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import { answer, called, step, TestPath, text, user } from "../../test/context/paths.ts";
import type { Part } from "../message/types.ts";
import {
  finishCompaction,
  startCompaction,
  undoCompaction,
  type CompactionEnd,
  type NewCompaction,
} from "../store/compaction.ts";
import { readMessage, setPinned } from "../store/message.ts";
import type { Sql } from "../port.ts";
import { project } from "./view.ts";

const begun: NewCompaction = {
  ...{ id: "k1", session: "main", at: 0, parts: null, kind: "summary", trigger: "manual", turn: null, step: null },
  ...{ call: null, prior: null, tokensBefore: 100, model: "m", focus: null, createdAt: 0 },
};
const ended: CompactionEnd = {
  ...{ kind: "summary", at: 0, parts: null, tokensAfter: 10, pins: "[]", calls: "[]", files: "[]" },
  ...{ summary: "It began.", carried: "" },
};

function compact(db: Sql, at: number, more: Partial<CompactionEnd> = {}, id = "k1"): number {
  const seq = startCompaction(db, { ...begun, id, at, kind: more.kind ?? "summary" });
  finishCompaction(db, seq, { ...ended, at, ...more }, 0);
  return seq;
}

async function open() {
  const { host } = await probeHost();
  const path = new TestPath(host).add(
    user("u1", "one"),
    answer("a1", step, { type: "reasoning", text: "hm" }, called("read", "c1", { long: "x" }), step, text("two")),
    user("u2", "three"),
    answer("a2", text("four")),
  );
  const seqOf = (id: string) => readMessage(host, id)?.seq ?? 0;
  return { host, path, seqOf, shown: () => project(path.view()) };
}

const ids = (messages: readonly { id: string }[]) => messages.map(({ id }) => id);

test("without a compaction the model reads what was said, in the same objects", async () => {
  const { path, shown } = await open();
  expect(ids(shown())).toEqual(["u1", "a1", "u2", "a2"]);
  expect(shown()[1]).toBe(path.view().nodes[1]?.message);
});

test("a compaction stands for all before it, as one message of the user; nothing further up is read", async () => {
  const { host, path, seqOf, shown } = await open();
  compact(host, seqOf("a1"), { carried: "- a run is under way" });
  const messages = shown();
  expect(ids(messages)).toEqual(["compaction-k1", "u2", "a2"]);
  expect(messages[0]).toMatchObject({ role: "user" });
  expect(JSON.stringify(messages[0])).toContain("It began.");
  expect(JSON.stringify(messages[0])).toContain("a run is under way");
  expect(messages.map(({ id }) => id.startsWith("compaction-"))).toEqual([true, false, false]);
  for (let i = 0; i < 200; i++) path.add(user(`x${i}`, "x"));
  const long = new TestPath(host);
  long.leaf = path.leaf;
  compact(host, path.leaf ?? 0, {}, "k2");
  expect(ids(project(long.view()))).toEqual(["compaction-k2"]);
  expect(long.read).toBeLessThanOrEqual(64);
});

test("only what is done counts, and what is undone counts no more", async () => {
  const { host, seqOf, shown } = await open();
  const before = JSON.stringify(shown());
  startCompaction(host, { ...begun, id: "k0", at: seqOf("a1") });
  expect(JSON.stringify(shown())).toBe(before);
  const seq = compact(host, seqOf("a1"));
  expect(JSON.stringify(shown())).not.toBe(before);
  undoCompaction(host, seq);
  expect(JSON.stringify(shown())).toBe(before);
});

test("a later compaction stands for an earlier one; undone, the earlier one is back", async () => {
  const { host, seqOf, shown } = await open();
  compact(host, seqOf("u1"), {}, "k1");
  const second = compact(host, seqOf("u2"), {}, "k2");
  expect(ids(shown())).toEqual(["compaction-k2", "a2"]);
  undoCompaction(host, second);
  expect(ids(shown())).toEqual(["compaction-k1", "a1", "u2", "a2"]);
});

test("a message can be covered in part, and further the second time", async () => {
  const { host, seqOf, shown } = await open();
  compact(host, seqOf("a1"), { parts: 3 });
  expect(ids(shown())).toEqual(["compaction-k1", "a1", "u2", "a2"]);
  expect(shown()[1]?.parts).toEqual([step, text("two")]);
  expect(shown()[1]).toBe(shown()[1]);
  compact(host, seqOf("a1"), { parts: 5 }, "k2");
  expect(ids(shown())).toEqual(["compaction-k2", "u2", "a2"]);
});

test("pinned messages are shown whole behind the summary, without reasoning", async () => {
  const { host, seqOf, shown } = await open();
  setPinned(host, seqOf("a1"), true);
  compact(host, seqOf("u2"), { pins: JSON.stringify([seqOf("u1"), seqOf("a1"), 999]) });
  const messages = shown();
  expect(ids(messages)).toEqual(["compaction-k1", "u1", "a1", "a2"]);
  expect(messages[1]).toEqual(user("u1", "one"));
  expect(messages[2]?.parts).toEqual([step, called("read", "c1", { long: "x" }), step, text("two")]);
  expect(shown()[2]).toBe(messages[2]);
});

test("an answer that is pinned after it was split is shown once, and whole", async () => {
  const { host, seqOf, shown } = await open();
  compact(host, seqOf("a1"), { parts: 3, pins: JSON.stringify([seqOf("u1"), seqOf("a1")]) });
  const messages = shown();
  expect(ids(messages)).toEqual(["compaction-k1", "u1", "a1", "u2", "a2"]);
  expect(messages[2]?.parts).toHaveLength(5);
});

test("cleared outputs are replaced by a note on where they are; the call stays", async () => {
  const { host, path, seqOf, shown } = await open();
  const before = JSON.stringify(shown());
  const seq = compact(host, seqOf("a1"), { kind: "prune", calls: JSON.stringify([[seqOf("a1"), "c1"]]) });
  const [, a1] = shown();
  const part = a1?.parts.find(({ type }) => type === "tool-read") as Part & { output: string };
  expect(part.output).toContain("call c1, is kept in message a1");
  expect(part).toMatchObject({ toolCallId: "c1", state: "output-available" });
  expect(JSON.stringify(path.view().nodes[1]?.message)).toContain('"long":"x"');
  expect(shown()[1]).toBe(a1);
  undoCompaction(host, seq);
  expect(JSON.stringify(shown())).toBe(before);
});

test("the same rows give the same bytes, in another life too, and what comes later is added at the end", async () => {
  const { host, path, seqOf, shown } = await open();
  setPinned(host, seqOf("u1"), true);
  compact(host, seqOf("a1"), { pins: JSON.stringify([seqOf("u1")]), carried: "- x" });
  const before = JSON.stringify(shown());
  expect(JSON.stringify(shown())).toBe(before);
  const other = new TestPath(host);
  other.leaf = path.leaf;
  expect(JSON.stringify(project(other.view()))).toBe(before);
  path.add(user("u3", "five"));
  expect(JSON.stringify(shown()).startsWith(before.slice(0, -1))).toBe(true);
});

test("what an answer took in stays out, also when that answer is covered", async () => {
  const { host, path, seqOf, shown } = await open();
  const said = { type: "steering-message", id: "u4", parts: [text("more")] } as Part;
  path.add(user("u3", "go"), answer("a3", step, text("x"), said, step, text("y")), user("u4", "more"), user("u5", "z"));
  expect(ids(shown())).toEqual(["u1", "a1", "u2", "a2", "u3", "a3", "u5"]);
  compact(host, seqOf("a3"));
  expect(ids(shown())).toEqual(["compaction-k1", "u5"]);
});

test("all that no compaction covers is read, however long it is, and nothing above", async () => {
  const { host, path } = await open();
  for (let i = 0; i < 300; i++) path.add(user(`x${i}`, "word ".repeat(100)));
  const all = path.view();
  expect(ids(project(all))).toEqual(["u1", "a1", "u2", "a2", ...Array.from({ length: 300 }, (_, i) => `x${i}`)]);
  compact(host, all.nodes[250]?.seq ?? 0);
  expect(path.view().nodes).toHaveLength(all.nodes.length - 251);
  expect(path.read).toBe(all.nodes.length - 250);
});
