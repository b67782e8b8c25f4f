import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import { listCells } from "../store/cell.ts";
import { ContextBlocks } from "./context-blocks.ts";
import { copyContext, deleteContext } from "./lifecycle.ts";
import { MAX_ENTRIES } from "./stored-entries.ts";

async function open() {
  const { host } = await probeHost();
  const make = (session = "main", shared = false) =>
    new ContextBlocks(host, { session }).withContext("notes", { keyed: true, shared, maxTokens: 100 });
  const use = async (blocks: ContextBlocks, name: string, input: object, idempotencyKey = "m:c"): Promise<unknown> =>
    blocks.tools()[name]?.execute?.({ label: "notes", ...input }, {
      ...{ toolCallId: "c", messages: [], context: {}, idempotencyKey },
    } as never);
  return { host, make, use };
}

test("a block with keys is stored entry by entry, and the model can do all with it", async () => {
  const { make, use } = await open();
  const blocks = make();
  expect(Object.keys(blocks.tools())).toEqual(["set_context", "load_context", "unload_context", "search_context"]);
  expect(blocks.writesElsewhere).toBe(false);
  await use(blocks, "set_context", { key: "tea: green", content: "80 degrees.", description: "How hot" });
  await use(blocks, "set_context", { key: "pie", content: "Bake it." }, "m:d");
  await use(blocks, "set_context", { key: "tea: green", content: "Two minutes.", action: "append" }, "m:e");
  await use(blocks, "set_context", { key: "tea: green", content: "Two minutes.", action: "append" }, "m:e");
  const later = make();
  expect(await later.systemPrompt()).toContain(
    '<block name="notes" kind="loadable, searchable, writable" used="7% of 100 tokens">\n- pie\n- tea: green: How hot\n</block>',
  );
  expect(await use(later, "load_context", { key: "tea: green" })).toBe("80 degrees.\nTwo minutes.");
  expect(await use(later, "search_context", { query: "minutes hot" })).toEqual({
    results: [{ key: "tea: green", content: "80 degrees.\nTwo minutes." }],
  });
  expect(await use(later, "search_context", { query: "coffee" })).toBe("Nothing was found.");
  await expect(use(later, "load_context", { key: "tea" })).rejects.toMatchObject({ code: "not_found" });
  expect(make("other").getContextBlock("notes")?.content).toBe("");
});

test("entries that fit better come first", async () => {
  const { make, use } = await open();
  const blocks = make();
  await blocks.setContextEntry("notes", "a", "sailing");
  await blocks.setContextEntry("notes", "b", "sailing boats on lakes");
  await blocks.setContextEntry("notes", "c", "lakes");
  const found = await use(blocks, "search_context", { query: "sailing lakes" });
  expect((found as { results: { key: string }[] }).results[0]?.key).toBe("b");
});

test("an entry that is emptied is gone, and there is an end to how many there are", async () => {
  const { host, make } = await open();
  const blocks = make();
  for (let n = 0; n < MAX_ENTRIES; n++) await blocks.setContextEntry("notes", `k${n}`, "x");
  await expect(blocks.setContextEntry("notes", "more", "x")).rejects.toMatchObject({ code: "limit" });
  expect(listCells(host, "entry:")).toHaveLength(MAX_ENTRIES);
  await blocks.setContextEntry("notes", "k3", "still", "described");
  await blocks.setContextEntry("notes", "k4", "");
  await blocks.setContextEntry("notes", "more", "x");
  expect(listCells(host, "entry:")).toHaveLength(MAX_ENTRIES);
  blocks.removeContext("notes", { erase: true });
  expect(listCells(host, "entr")).toEqual([]);
});

test("entries are shared, forked and deleted like any block", async () => {
  const { host, make, use } = await open();
  await make("a", true).setContextEntry("notes", "k", "for all");
  expect(await use(make("b", true), "load_context", { key: "k" })).toBe("for all");
  await make("a").setContextEntry("notes", "k:1", "mine");
  await make("a:notes").setContextEntry("notes", "k", "another's");
  copyContext(host, "a", "fork");
  expect(await use(make("fork"), "load_context", { key: "k:1" })).toBe("mine");
  deleteContext(host, "a");
  await expect(use(make("a"), "load_context", { key: "k:1" })).rejects.toMatchObject({ code: "not_found" });
  expect(await use(make("fork"), "load_context", { key: "k:1" })).toBe("mine");
  expect(await use(make("a:notes"), "load_context", { key: "k" })).toBe("another's");
  expect(await use(make("a", true), "load_context", { key: "k" })).toBe("for all");
});

test("what is for one text is not for many", async () => {
  const { make, host } = await open();
  await expect(make().replaceContextBlock("notes", "x")).rejects.toMatchObject({ code: "bad_input" });
  const plain = new ContextBlocks(host, { session: "s" }).withContext("memory");
  await expect(plain.setContextEntry("memory", "k", "x")).rejects.toMatchObject({ code: "bad_input" });
  expect(() => plain.withContext("x", { keyed: true, initial: "x" })).toThrow(/initial is for one text/);
  expect(() => plain.withContext("x", { keyed: true, provider: { get: () => "" } })).toThrow(/provider/);
});
