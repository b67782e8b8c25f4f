import { expect, test } from "vitest";
import { answer, called, text } from "../../test/context/paths.ts";
import type { Part } from "../message/types.ts";
import { joinFiles, MAX_FILES, renderCarried, saidInto, touchedFiles } from "./carried.ts";

test("nothing is said about nothing", () => {
  expect(renderCarried({})).toBe("");
  expect(renderCarried({ runs: [], files: [], todos: [], plan: "", more: [] })).toBe("");
});

test("all that is live is told, in an order of its own, and the same each time", () => {
  const state = {
    loaded: ["rules"],
    files: [{ path: "src/a.ts", tool: "edit" }],
    plan: "First this.",
    todos: [{ text: "write", state: "done" }, { text: "test" }],
    said: ["shorter"],
    queued: [{ id: "u9", text: "and\nthen" }],
    approvals: [{ call: "c1", tool: "pay", input: { euros: 5 } }],
    runs: [{ id: "r1", name: "Researcher", task: "find it" }],
    more: [{ title: "Cart:", lines: ["2 apples"] }],
  };
  const shown = renderCarried(state);
  expect(shown).toBe(renderCarried(structuredClone(state)));
  const order = [
    "run r1",
    "call c1",
    "and then",
    "shorter",
    "[done] write",
    "First this.",
    "src/a.ts (edit)",
    "- rules",
  ];
  const places = [...order, "2 apples"].map((words) => shown.indexOf(words));
  expect(places).not.toContain(-1);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
});

test("long lists and lines are bounded", () => {
  const shown = renderCarried({ loaded: Array.from({ length: 100 }, (_, i) => `block ${i} ${"x".repeat(1_000)}`) });
  expect(shown.split("\n")).toHaveLength(42);
  expect(shown).toContain("(60 more)");
  expect(shown).toContain("block 99");
  expect(Math.max(...shown.split("\n").map((line) => line.length))).toBeLessThan(410);
});

test("files are found in the inputs of calls that succeeded, each once, the newest last", () => {
  const failed = { type: "tool-read", toolCallId: "x", state: "output-error", input: { path: "no" }, errorText: "" };
  const parts = [
    called("read", "c1", "", { path: "a.ts" }),
    called("edit", "c2", "", { file_path: "b.ts" }),
    called("edit", "c3", "", { path: "a.ts" }),
    called("ask", "c4", "", "a.ts"),
    failed as Part,
    text("c.ts"),
  ];
  const files = joinFiles([{ path: "b.ts", tool: "read" }], touchedFiles(parts));
  expect(files).toEqual([
    { path: "b.ts", tool: "edit" },
    { path: "a.ts", tool: "edit" },
  ]);
  const many = Array.from({ length: 200 }, (_, i) => ({ path: `${i}`, tool: "read" }));
  expect(joinFiles(many, files)).toHaveLength(MAX_FILES);
});

test("what was said into the covered part of an answer", () => {
  const said = (id: string) => ({ type: "steering-message", id, parts: [text(`said ${id}`)] }) as Part;
  expect(saidInto(answer("a", said("1"), text("x"), said("2")), 2)).toEqual(["said 1"]);
});
