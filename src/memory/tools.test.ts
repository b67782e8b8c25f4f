import type { ToolSet } from "ai";
import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import { ContextBlocks } from "./context-blocks.ts";
import { loadedKeys, markerFor, settleUnloads, unloadedCalls } from "./loaded.ts";
import { loadableContext, searchableFrom, staticContext } from "./providers.ts";

async function open() {
  const probe = await probeHost();
  const blocks = new ContextBlocks(probe.host, { session: "main" });
  let calls = 0;
  /** Calls a tool as the step loop does. */
  const use = async (name: string, input: unknown, key = `m1:c${++calls}`): Promise<unknown> => {
    const tools: ToolSet = blocks.tools();
    const options = { toolCallId: key.slice(key.indexOf(":") + 1), messages: [], idempotencyKey: key, context: {} };
    return tools[name]?.execute?.(input, options);
  };
  return { ...probe, blocks, use };
}

const said = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) as string }) as Error;

test("there are only tools that some block has use for", async () => {
  const { blocks } = await open();
  expect(Object.keys(blocks.tools())).toEqual([]);
  blocks.withContext("rules", { provider: staticContext("x") });
  expect(Object.keys(blocks.tools())).toEqual([]);
  await blocks.addContext("docs", { provider: loadableContext({}) });
  expect(Object.keys(blocks.tools())).toEqual(["load_context", "unload_context"]);
  await blocks.addContext("web", { provider: searchableFrom("The web", () => []) });
  await blocks.addContext("memory");
  expect(Object.keys(blocks.tools())).toEqual(["set_context", "load_context", "unload_context", "search_context"]);
});

test("set_context replaces and adds, and says how full the block is", async () => {
  const { blocks, use } = await open();
  blocks.withContext("memory", { maxTokens: 10 }).withContext("notes");
  expect(await use("set_context", { label: "memory", content: "Ada likes tea." })).toBe(
    'Written. The block "memory" has about 4 of 10 (40%) tokens now.',
  );
  await use("set_context", { label: "memory", content: "And cake.", action: "append", key: "", description: null });
  expect(blocks.getContextBlock("memory")?.content).toBe("Ada likes tea.\nAnd cake.");
  expect(await use("set_context", { label: "notes", content: "Hm." })).toBe(
    'Written. The block "notes" has about 1 tokens now.',
  );
});

test("a call that runs again has written once", async () => {
  const { blocks, use } = await open();
  blocks.withContext("memory");
  const input = { label: "memory", content: "x", action: "append" };
  await Promise.all([use("set_context", input, "m1:a"), use("set_context", input, "m1:b")]);
  await use("set_context", input, "m1:a");
  await use("set_context", input, "m2:a");
  await use("set_context", input, "m1:b");
  expect(blocks.getContextBlock("memory")?.content).toBe("x\nx\nx");
});

test("what a model gets wrong it is told, and nothing is written", async () => {
  const { blocks, use } = await open();
  blocks
    .withContext("memory", { maxTokens: 3 })
    .withContext("rules", { provider: staticContext("x") })
    .withContext("docs", { provider: { get: () => "", load: () => undefined, set: () => {} } })
    .withContext("facts", { provider: { get: () => "", search: () => null, set: () => {} } });
  const wrong: [string, unknown, Error][] = [
    ["set_context", "memory", said("bad_input", /must be an object/)],
    ["set_context", {}, said("bad_input", /"label" is missing/)],
    ["set_context", { label: "memory" }, said("bad_input", /"content" is missing/)],
    ["set_context", { label: 4, content: "x" }, said("bad_input", /"label" must be a string/)],
    ["set_context", { label: "memory", content: {} }, said("bad_input", /"content" must be a string/)],
    ["set_context", { label: "memory", content: "x", action: "delete" }, said("bad_input", /"replace" or "append"/)],
    ["set_context", { label: "memory", content: "x", key: "k" }, said("bad_input", /Leave "key" out/)],
    ["set_context", { label: "memory", content: "x".repeat(16) }, said("limit", /about 1 tokens shorter/)],
    [
      "set_context",
      { label: "Memory", content: "x" },
      said("not_found", /no block "Memory".*: memory, docs \(has keys\)/),
    ],
    ["set_context", { label: "rules", content: "x" }, said("read_only", /"rules" is none that can be written/)],
    ["set_context", { label: "docs", content: "x" }, said("bad_input", /name the entry with "key"/)],
    ["set_context", { label: "docs", content: "x", key: "k".repeat(513) }, said("bad_input", /at most 512/)],
    ["set_context", { label: "facts", content: "x", key: "k", action: "append" }, said("bad_input", /written whole/)],
    ["load_context", { label: "memory", key: "k" }, said("read_only", /: docs \(has keys\)\.$/)],
    ["load_context", { label: "docs" }, said("bad_input", /name the entry with "key"/)],
    ["load_context", { label: "docs", key: "../k" }, said("not_found", /no "\.\.\/k" in the block "docs"/)],
    ["unload_context", { label: "docs", key: "k" }, said("not_found", /not loaded. Nothing/)],
    ["search_context", { label: "facts" }, said("bad_input", /"query" is missing/)],
    ["search_context", { label: "facts", query: " " }, said("bad_input", /between 1 and/)],
    ["search_context", { label: "docs", query: "x" }, said("read_only", /searched/)],
  ];
  for (const [name, input, error] of wrong)
    await expect(use(name, input), JSON.stringify(input)).rejects.toEqual(error);
  expect(blocks.getContextBlock("memory")?.content).toBe("");
});

test("entries are loaded, written and added to by their keys", async () => {
  const { blocks, use } = await open();
  const entries = new Map<string, string>([["tea", "Boil water."]]);
  const about: (string | undefined)[] = [];
  const set = async (key: string, content: string, description?: string) => {
    entries.set(key, content);
    about.push(description);
  };
  blocks.withContext("docs", { provider: { ...loadableContext(entries), set } });
  expect(await use("load_context", { label: "docs", key: "tea" })).toBe("Boil water.");
  expect(await use("set_context", { label: "docs", key: "pie", content: "Bake.", description: "A pie" })).toBe(
    'Written to the block "docs".',
  );
  await Promise.all(
    ["Add tea.", "Wait."].map((content) =>
      use("set_context", { label: "docs", key: "tea", content, action: "append" }),
    ),
  );
  expect(Object.fromEntries(entries)).toEqual({ tea: "Boil water.\nAdd tea.\nWait.", pie: "Bake." });
  expect(about).toEqual(["A pie", undefined, undefined]);
  expect(await blocks.systemPrompt()).toContain("- pie\n- tea");
});

test("what was loaded and is not needed leaves at the next compaction, not before", async () => {
  const { blocks, use, host } = await open();
  blocks.withContext("docs", { provider: loadableContext({ tea: "Boil water.", pie: "Bake." }) });
  await use("load_context", { label: "docs", key: "tea" }, "m1:call_1");
  await use("load_context", { label: "docs", key: "pie" }, "m2:call_1");
  await use("load_context", { label: "docs", key: "tea" }, "m1:call_1");
  expect(loadedKeys(host, "main")).toEqual([
    { label: "docs", key: "tea", call: "m1:call_1" },
    { label: "docs", key: "pie", call: "m2:call_1" },
  ]);
  expect(await use("unload_context", { label: "docs", key: "tea" })).toContain("compacted");
  await expect(use("unload_context", { label: "docs", key: "tea" })).rejects.toEqual(
    said("not_found", /Loaded are: "pie"/),
  );
  expect(unloadedCalls(host, "main").size).toBe(0);
  expect(loadedKeys(host, "main").map(({ key }) => key)).toEqual(["pie"]);
  settleUnloads(host, "main");
  const unloaded = unloadedCalls(host, "main");
  expect(markerFor(unloaded, "m1", "call_1")).toContain('"tea" of the context block "docs" was unloaded');
  // Another message, whose model counts its calls from one as well.
  expect(markerFor(unloaded, "m2", "call_1")).toBeUndefined();
  expect(unloadedCalls(host, "other").size).toBe(0);
});

test("a search gives the ten best, cut", async () => {
  const { blocks, use } = await open();
  let found: unknown;
  const asked: unknown[] = [];
  const search = (query: string, options: { limit: number }) => {
    asked.push({ query, options });
    return found as string;
  };
  blocks.withContext("web", { provider: { get: () => "", search } });
  const look = () => use("search_context", { label: "web", query: " tea " });
  found = Array.from({ length: 12 }, (_, n) => (n === 0 ? "x".repeat(3_000) : { key: `k${n}`, content: `hit ${n}` }));
  const { results } = (await look()) as { results: { key?: string; content: string }[] };
  expect(results).toHaveLength(10);
  expect(results[0]?.content).toMatch(/^x{2000}\n\[Cut here: the whole has 3000 characters\.\]$/);
  expect(results[1]).toEqual({ key: "k1", content: "hit 1" });
  expect(asked).toEqual([{ query: "tea", options: { limit: 10 } }]);
  for (found of [[], "", null, undefined]) expect(await look()).toBe("Nothing was found.");
  found = "as it is";
  expect(await look()).toBe("as it is");
  found = [{ key: "k", content: 4 }];
  await expect(look()).rejects.toEqual(said("provider_failed", /returned number/));
});

test("a provider that fails, or takes too long, is told to the model", async () => {
  const { blocks, use, clock } = await open();
  const fail = () => {
    throw new Error("The shelf is locked.");
  };
  const never = () => new Promise<never>(() => {});
  blocks
    .withContext("docs", { provider: { get: () => "", load: fail, search: never, set: fail } })
    .withContext("shelf", { provider: { get: () => "", set: async () => fail() } });
  await expect(use("load_context", { label: "docs", key: "a" })).rejects.toEqual(
    said("provider_failed", /Loading "a" of the block "docs" failed: The shelf is locked/),
  );
  await expect(use("set_context", { label: "docs", key: "a", content: "x" })).rejects.toEqual(
    said("provider_failed", /Writing "a"/),
  );
  await expect(use("set_context", { label: "shelf", content: "x" })).rejects.toEqual(
    said("provider_failed", /Writing the block "shelf"/),
  );
  const search = use("search_context", { label: "docs", query: "x" });
  const told = expect(search).rejects.toEqual(said("timeout", /Searching the block "docs" was given up/));
  await clock.advance(30_000);
  await told;
});
