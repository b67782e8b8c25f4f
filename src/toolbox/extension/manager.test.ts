import type { Tool } from "ai";
import { afterAll, expect, test } from "vitest";
import { probeHost, type ProbeHost } from "../../../test/chat/probe-host.ts";
import { errorText } from "../../base/error.ts";
import { createQuickJsSandbox } from "../sandbox/quickjs/create.ts";
import { createExtensionTools } from "./extension-tools.ts";
import type { ExtensionBridge } from "./host-functions.ts";
import { ExtensionManager, type ExtensionManagerOptions } from "./manager.ts";
import type { ExtensionManifest } from "./manifest.ts";

const loader = createQuickJsSandbox();
afterAll(() => loader.dispose());

interface Kit extends ProbeHost {
  readonly failures: string[];
  open(more?: Partial<ExtensionManagerOptions>): ExtensionManager;
}

async function open(): Promise<Kit> {
  const probe = await probeHost();
  const failures: string[] = [];
  return {
    ...probe,
    failures,
    open: (more) =>
      new ExtensionManager({ loader, host: probe.host, failed: (error) => failures.push(errorText(error)), ...more }),
  };
}

/** An extension with one tool that does `body` with `args` and `host`. */
const one = (body: string, more = "") =>
  `({ tools: { run: { description: "Runs.", execute: async (args, host) => { ${body} } } }, ${more} })`;

const manifest = (name: string, more: Partial<ExtensionManifest> = {}): ExtensionManifest => ({
  name,
  version: "1",
  ...more,
});

async function call(manager: ExtensionManager, name: string, args: object = {}): Promise<unknown> {
  const tool: Tool | undefined = manager.getTools()[name];
  if (tool?.execute === undefined) throw new Error(`There is no ${name}.`);
  return tool.execute(args, { toolCallId: "c1", messages: [], context: {} } as never) as unknown;
}

const codeOf = (code: string, text = "") =>
  expect.objectContaining({ code, message: expect.stringContaining(text) }) as unknown;

test("a loaded extension brings its tools, by its name", async () => {
  const kit = await open();
  const manager = kit.open();
  const info = await manager.load(
    manifest("math-kit", { description: "Sums." }),
    `({ tools: { add: {
      description: "Adds.",
      parameters: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
      execute: async ({ a, b }) => ({ sum: a + b }),
    } } });`,
  );
  expect(info).toMatchObject({
    name: "math-kit",
    version: "1",
    description: "Sums.",
    tools: ["math_kit_add"],
    from: "loaded",
  });
  expect(await call(manager, "math_kit_add", { a: 1, b: 2 })).toEqual({ sum: 3 });
  const schema = manager.getTools().math_kit_add?.inputSchema as {
    validate: (value: unknown) => { success: boolean; error?: Error };
  };
  expect(schema.validate({ a: 1, b: 2 }).success).toBe(true);
  expect(schema.validate({ a: 1 }).error?.message).toContain("b must be given");
  expect(schema.validate({ a: "1", b: 2 }).error?.message).toContain("a must be of type number");
});

test("what a guest keeps in memory stays from call to call, and is not shared", async () => {
  const kit = await open();
  const manager = kit.open();
  const source = `(() => { let n = 0; return ${one("return ++n;")}; })()`;
  await manager.load(manifest("a"), source);
  await manager.load(manifest("b"), source);
  expect([await call(manager, "a_run"), await call(manager, "a_run"), await call(manager, "b_run")]).toEqual([1, 2, 1]);
});

test("after a restart it is there again, in load order, and runs when it is called", async () => {
  const kit = await open();
  await kit.open().load(manifest("b"), one("return 'b';"));
  const first = kit.open();
  await first.load(manifest("a"), one("return 'a';"));
  // Made anew, it keeps its place.
  await first.load(manifest("b", { version: "2" }), one("return 'b2';"));
  let opened = 0;
  const counting = () => (opened++, loader);
  const later = kit.open({ loader: counting });
  expect(later.list().map(({ name, version }) => `${name} ${version}`)).toEqual(["b 2", "a 1"]);
  expect(Object.keys(later.getTools())).toEqual(["b_run", "a_run"]);
  expect(opened).toBe(0);
  expect(await call(later, "b_run")).toBe("b2");
  expect(opened).toBe(1);
  expect(await later.unload("b")).toBe(true);
  expect(await later.unload("b")).toBe(false);
  expect(
    kit
      .open()
      .list()
      .map(({ name }) => name),
  ).toEqual(["a"]);
});

test("one that cannot be loaded leaves what was there", async () => {
  const kit = await open();
  const manager = kit.open();
  await manager.load(manifest("a"), one("return 1;"));
  await expect(manager.load(manifest("a"), "({ tools: ")).rejects.toEqual(codeOf("bad_input", "SyntaxError"));
  await expect(manager.load(manifest("a"), "5")).rejects.toEqual(codeOf("bad_input", "one object"));
  await expect(manager.load(manifest("a"), " ")).rejects.toEqual(codeOf("bad_input", "one expression"));
  await expect(manager.load(manifest("a"), `"${"x".repeat(300_000)}"`)).rejects.toEqual(codeOf("limit", "300002"));
  await expect(manager.load(manifest("a"), "(() => { throw new Error('no'); })()")).rejects.toEqual(
    codeOf("bad_input", "no"),
  );
  expect(await call(manager, "a_run")).toBe(1);
});

test("names of tools are taken once", async () => {
  const kit = await open();
  const manager = kit.open({ reserved: () => ["read_file"] });
  await manager.load(manifest("a_b"), `({ tools: { c: { description: "C.", execute: () => 1 } } })`);
  const bc = `({ tools: { b_c: { description: "BC.", execute: () => 2 } } })`;
  await expect(manager.load(manifest("a"), bc)).rejects.toEqual(codeOf("conflict", "a_b_c"));
  await expect(manager.load(manifest("A-B"), one("return 1;"))).rejects.toEqual(codeOf("conflict", "too similar"));
  const file = `({ tools: { file: { description: "F.", execute: () => 2 } } })`;
  await expect(manager.load(manifest("read"), file)).rejects.toEqual(codeOf("conflict", "read_file"));
  const load = `({ tools: { extension: { description: "F.", execute: () => 2 } } })`;
  await expect(manager.load(manifest("load"), load)).rejects.toEqual(codeOf("conflict", "load_extension"));
  // A tool of the agent that came later wins.
  expect(Object.keys(kit.open({ reserved: () => ["a_b_c"] }).getTools())).toEqual([]);
});

test("tools that are merged into those of the agent are not taken for others", async () => {
  const kit = await open();
  let merged: string[] = [];
  const manager = kit.open({ reserved: () => merged });
  await manager.load(manifest("a"), one("return 1;"));
  merged = Object.keys(manager.getTools());
  expect(merged).toEqual(["a_run"]);
  expect(Object.keys(manager.getTools())).toEqual(merged);
  await manager.load(manifest("a", { version: "2" }), one("return 2;"));
  expect(await call(manager, "a_run")).toBe(2);
});

test("what the app declares comes first, is not stored as loaded, and cannot be replaced", async () => {
  const kit = await open();
  const declared = [
    { manifest: manifest("z"), source: one("return 'z1';") },
    { manifest: manifest("broken"), source: "({" },
    { manifest: manifest("y"), source: one("return 'y';") },
  ];
  const manager = kit.open();
  await manager.load(manifest("a"), one("return 'a';"));
  await manager.declare(declared);
  expect(manager.list().map(({ name, from }) => `${name} ${from}`)).toEqual(["z code", "y code", "a loaded"]);
  expect(kit.failures).toHaveLength(1);
  await expect(manager.load(manifest("z"), one("return 0;"))).rejects.toEqual(codeOf("conflict", "belongs to the app"));
  await expect(manager.unload("z")).rejects.toEqual(codeOf("not_allowed"));
  // In the next life nothing runs to know what they are.
  let opened = 0;
  const later = kit.open({ loader: () => (opened++, loader) });
  const [z, , y] = declared;
  await later.declare([z, y].filter((entry) => entry !== undefined));
  expect(Object.keys(later.getTools())).toEqual(["z_run", "y_run", "a_run"]);
  expect(opened).toBe(0);
  await later.declare([{ manifest: manifest("z"), source: one("return 'z2';") }]);
  expect(await call(later, "z_run")).toBe("z2");
  expect(later.list().map(({ name }) => name)).toEqual(["z", "a"]);
});

test("a tool that fails, or does too much, says so; the extension can be called again", async () => {
  const kit = await open();
  const manager = kit.open();
  await manager.load(
    manifest("bad"),
    `({ tools: {
      fails: { description: "F.", execute: () => { throw new RangeError("not that"); } },
      big: { description: "B.", execute: () => "x".repeat(5_000_000) },
      ok: { description: "O.", execute: () => "ok" },
    } })`,
  );
  await expect(call(manager, "bad_fails")).rejects.toEqual(codeOf("call_failed", "RangeError: not that"));
  await expect(call(manager, "bad_big")).rejects.toEqual(codeOf("call_failed"));
  expect(await call(manager, "bad_ok")).toBe("ok");
});

// Hooks

const turn = {
  requestId: "r1",
  sessionId: "s1",
  system: "Sys.",
  messages: [1, 2],
  tools: { read: {} },
  continuation: false,
};
const facts = { ...turn, model: { modelId: "m1" }, body: { plan: "pro" } };

test("beforeTurn may change plain settings; later extensions see and win over earlier ones", async () => {
  const kit = await open();
  const manager = kit.open();
  expect(manager.hooks.listens("beforeTurn")).toBe(false);
  expect(await manager.hooks.beforeTurn(facts)).toBeUndefined();
  const hooks = (body: string) => `({ hooks: { beforeTurn: async (snapshot, host) => { ${body} } } })`;
  const hears = { hooks: ["beforeTurn"] as const };
  await manager.load(manifest("a", hears), hooks("return { system: snapshot.system + ' A.', maxSteps: 2 };"));
  await manager.load(manifest("b", hears), hooks("return { system: snapshot.system + ' B.', model: 'x' };"));
  await manager.load(manifest("c", hears), hooks("return { stopSequences: [JSON.stringify([snapshot, host])] };"));
  const config = await manager.hooks.beforeTurn(facts);
  const system = "Sys.\n\n<extension a>\nA.\n</extension a>\n\n<extension b>\nB.\n</extension b>";
  expect(config).toMatchObject({ system, maxSteps: 2 });
  expect(JSON.parse(config?.stopSequences?.[0] ?? "")).toEqual([
    {
      ...{ requestId: "r1", sessionId: "s1", system, toolNames: ["read"], messageCount: 2 },
      ...{ modelId: "m1", continuation: false, body: { plan: "pro" } },
    },
    null,
  ]);
  expect(kit.failures).toEqual([expect.stringContaining("may not set model")]);
});

test("the other hooks watch: bounded snapshots, errors reported, off after three failures in a row", async () => {
  const kit = await open();
  const seen: string[] = [];
  const bridge = (): ExtensionBridge => ({ sendMessage: (text) => void seen.push(text) });
  const manager = kit.open({ bridge });
  const permissions = { session: { sendMessage: true } };
  const hooks = ["beforeToolCall", "afterToolCall", "onStepFinish", "onChunk"] as const;
  await manager.load(
    manifest("spy", { permissions, hooks }),
    `({ hooks: {
      beforeToolCall: async (s, host) => { await host.sendMessage(JSON.stringify(s)); return { action: "block" }; },
      afterToolCall: async (s, host) => { await host.sendMessage(JSON.stringify(s)); },
      onStepFinish: async (s, host) => { await host.sendMessage(s.text + s.toolCallCount); },
      onChunk: (() => { let all = ""; return async (s, host) => {
        all += s.text ?? "";
        if (s.type === "finish") await host.sendMessage(all);
      }; })(),
    } })`,
  );
  await manager.load(
    manifest("bad", { hooks: ["beforeToolCall"] }),
    `({ hooks: { beforeToolCall: () => { throw new Error("no"); } } })`,
  );
  const ctx = { toolName: "read", toolCallId: "c1", input: { path: "x".repeat(100_000) }, stepNumber: 0 };
  await manager.hooks.beforeToolCall(ctx);
  expect(seen[0]?.length).toBeLessThan(20_000);
  expect(JSON.parse(seen[0] ?? "")).toMatchObject({ toolName: "read", toolCallId: "c1", stepNumber: 0 });
  await manager.hooks.afterToolCall({
    ...ctx,
    input: {},
    durationMs: 5,
    success: true,
    output: { n: 1n, when: new Date(0) },
  });
  expect(JSON.parse(seen[1] ?? "")).toMatchObject({ success: true, durationMs: 5, output: { n: "1" } });
  for (const text of ["Hel", "lo"]) manager.hooks.onChunk({ chunk: { type: "text-delta", text } as { type: string } });
  manager.hooks.onChunk({ chunk: { type: "finish" } });
  // Not told yet: that is not the stream's business.
  expect(seen).toHaveLength(2);
  await manager.hooks.idle();
  expect(seen[2]).toBe("Hello");
  const step = { stepNumber: 0, finishReason: "stop", text: "Hi", toolCalls: [1], toolResults: [], usage: {} };
  await manager.hooks.onStepFinish(step);
  expect(seen[3]).toBe("Hi1");
  expect(manager.list()[1]?.off).toBeUndefined();
  for (let i = 0; i < 4; i++) await manager.hooks.beforeToolCall({ ...ctx, input: {} });
  expect(manager.list()[1]?.off).toContain("3 times in a row");
  expect(kit.failures).toHaveLength(3);
  expect(manager.list()[0]?.off).toBeUndefined();
});

test("a hook has 250 ms to compute, and an endless one does not hold the turn", async () => {
  const kit = await open();
  const manager = kit.open();
  await manager.load(
    manifest("spin", { hooks: ["beforeTurn"] }),
    `({ hooks: { beforeTurn: () => { while (true) {} } } })`,
  );
  for (let i = 0; i < 3; i++) expect(await manager.hooks.beforeTurn(facts)).toEqual({});
  // By its computing; where the machine has no time to compute, by the clock.
  expect(kit.failures[0]).toMatch(/250 ms|4000 ms|longer/);
  expect(manager.hooks.listens("beforeTurn")).toBe(false);
});

// The model's tools

test("the model loads, lists and unloads; with approval of permissions, who must be asked follows from what is new", async () => {
  const kit = await open();
  const manager = kit.open();
  const tools = createExtensionTools({ manager, approval: "permissions" });
  const load = tools.load_extension;
  const input = (more: object) => ({ name: "mine", version: "1", source: one("return 1;"), ...more });
  const asks = (more: object) =>
    (load.needsApproval as (value: object, options: object) => Promise<boolean>)(input(more), {});
  const run = (more: object) => load.execute?.(input(more) as never, {} as never);
  expect(await asks({})).toBe(false);
  expect(await asks({ permissions: { workspace: "read" } })).toBe(true);
  expect(await asks({ hooks: ["onChunk"] })).toBe(true);
  // It fails anyway, and tells the model why.
  expect(await asks({ permissions: { workspace: "all" } })).toBe(false);
  expect(await run({ permissions: { workspace: "all" } })).toEqual({
    error: expect.stringContaining("permissions.workspace"),
  });
  expect(await run({ permissions: { workspace: "read", messages: "read" } })).toMatchObject({
    loaded: "mine",
    tools: ["mine_run"],
  });
  // The same, or less, was agreed to; also in the next life.
  expect(await asks({ permissions: { workspace: "read" } })).toBe(false);
  expect(kit.open().newWishes({ name: "mine", version: "2", permissions: { messages: "read" } })).toEqual([]);
  expect(await asks({ permissions: { workspace: "read-write" } })).toBe(true);
  expect(await asks({ name: "other", permissions: { workspace: "read" } })).toBe(true);
  const listed = await tools.list_extensions.execute?.({}, {} as never);
  expect(listed).toMatchObject({
    extensions: [{ name: "mine", permissions: { workspace: "read", messages: "read" } }],
  });
  expect(await tools.unload_extension.execute?.({ name: "mine" }, {} as never)).toEqual({ unloaded: true });
  expect(await asks({ permissions: { workspace: "read" } })).toBe(true);
});
