// Catalogues of servers that mean no good, or know no measure.
import { expect, test } from "vitest";
import { boundCapabilities, boundOthers, boundTools, EMPTY_CATALOGUE } from "../../src/toolbox/mcp/client/catalogue.ts";
import { mcpState } from "../../src/toolbox/mcp/client/state.ts";
import { nameTool, toModelOutput } from "../../src/toolbox/mcp/client/ai-tools.ts";

const object = { type: "object" };

test("a schema with ten thousand properties, or without end, leaves its tool out", () => {
  const properties = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`field${n}`, { type: "string" }]));
  let deep: object = {};
  for (let n = 0; n < 5_000; n++) deep = { items: deep };
  const { items, warnings } = boundTools([
    { name: "huge", inputSchema: { type: "object", properties } },
    { name: "deep", inputSchema: { type: "object", properties: { deep } } },
    { name: "list", inputSchema: { type: "array" } },
    { name: "text", inputSchema: "object" },
    { name: "good", inputSchema: object },
    { name: "none" },
  ]);
  expect(items.map(({ name }) => name)).toEqual(["good"]);
  expect(warnings).toHaveLength(5);
  expect(warnings[4]).toBe('The tool "none" was left out: it has no schema.');
  expect(warnings[0]).toContain("huge");
});

test("names count once, texts are bounded, and control characters are gone", () => {
  const { items, warnings } = boundTools([
    { name: "twice", description: "first", inputSchema: object },
    { name: "twice", description: "second", inputSchema: object },
    { name: "long", description: "x".repeat(100_000), title: "\u202eevil\u0000", inputSchema: object },
    { name: "n".repeat(500), inputSchema: object },
    { name: "", inputSchema: object },
    null,
    "tool",
  ]);
  expect(items).toHaveLength(2);
  expect(items[0]?.description).toBe("first");
  expect(items[1]?.description).toHaveLength(4_000);
  expect(items[1]?.title).toBe(" evil ");
  expect(warnings).toHaveLength(5);
});

test("thousands of tools, and tools that are large together, are cut off", () => {
  const many = boundTools(Array.from({ length: 5_000 }, (_, n) => ({ name: `t${n}`, inputSchema: object })));
  expect(many.items).toHaveLength(512);
  expect(many.warnings.length).toBeLessThan(30);
  const schema = { type: "object", properties: { a: { description: "x".repeat(30_000) } } };
  const large = boundTools(Array.from({ length: 100 }, (_, n) => ({ name: `t${n}`, inputSchema: schema })));
  expect(large.items.length).toBeLessThan(40);
  expect(large.warnings.at(-1)).toContain("too large together");
});

test("what a server says of a tool beside the known hints is dropped", () => {
  const { items } = boundTools([
    {
      name: "a",
      inputSchema: object,
      annotations: { readOnlyHint: true, idempotentHint: "yes", title: "A", extra: "x".repeat(1e6) },
      _meta: { big: "x".repeat(1e6) },
    },
  ]);
  expect(items).toEqual([{ name: "a", inputSchema: object, annotations: { title: "A", readOnlyHint: true } }]);
});

test("resources and prompts are bounded too", () => {
  const list = Array.from({ length: 3_000 }, (_, n) => ({ uri: `a://${n}`, name: `n${n}`, text: "x" }));
  expect(boundOthers(list, "uri").items).toHaveLength(1_000);
  expect(boundOthers([{ uri: "a://1" }, { uri: "a://1", name: "again" }, { name: "none" }], "uri").items).toEqual([
    { uri: "a://1", name: "a://1" },
  ]);
  expect(boundOthers([{ name: "p", arguments: [{ name: "x", required: true }, 7] }], "name").items).toEqual([
    { name: "p", arguments: [{ name: "x", required: true }] },
  ]);
});

test("every tool has a name of its own that providers take", () => {
  const taken = new Set<string>();
  const hard = ["read", "read file", "read_file", "read.file", "__proto__", "日本", "x".repeat(120), "x".repeat(121)];
  const names = hard.map((tool) => nameTool("a-b", tool, taken));
  names.push(nameTool("ab", "read", taken));
  expect(names[0]).toBe("tool_ab_read");
  expect(names[2]).toBe("tool_ab_read_file");
  expect(names.every((name) => /^[A-Za-z0-9_-]{1,64}$/.test(name))).toBe(true);
  expect(new Set(names).size).toBe(names.length);
  const again = new Set<string>();
  expect(hard.map((tool) => nameTool("a-b", tool, again))).toEqual(names.slice(0, -1));
});

test("what every client is sent is bounded: all prompts together, and what a server says that it can do", () => {
  const prompts = Array.from({ length: 500 }, (_, n) => ({
    name: `p${n}`,
    arguments: Array.from({ length: 100 }, (_, m) => ({ name: `a${m}`, description: "x".repeat(4_000) })),
  }));
  const { items, warnings } = boundOthers(prompts, "name");
  expect(JSON.stringify(items).length).toBeLessThan(600_000);
  expect(warnings).toEqual([expect.stringContaining("too large together")]);
  const small = { tools: { listChanged: true }, experimental: { a: {} } };
  expect(boundCapabilities(small)).toEqual(small);
  expect(boundCapabilities({ ...small, experimental: { a: { text: "x".repeat(100_000) } } })).toEqual({ tools: {} });
});

test("the last words of a program are not for clients", () => {
  const info = {
    ...{ id: "s", name: "files", url: "stdio:node", state: "failed" as const, authUrl: null, instructions: null },
    ...{ capabilities: null, protocolVersion: null, warnings: [] },
    error: "The server closed the connection. It wrote: Error: no such file .secret",
  };
  expect(mcpState([{ info, catalogue: EMPTY_CATALOGUE }]).servers.s?.error).toBe("The server closed the connection.");
});

test("a server cannot call a tool so that it looks like one of another server", () => {
  const ids = ["hub", "hub_admin"];
  const taken = new Set<string>();
  const forged = nameTool("hub", "admin_drop", taken, ids);
  expect(forged).not.toContain("hub_admin");
  expect(nameTool("hub", "drop", taken, ids)).toBe("tool_hub_drop");
  expect(nameTool("hub_admin", "drop", taken, ids)).toBe("tool_hub_admin_drop");
});

test("a picture that no model takes is named, and does not spoil the conversation", () => {
  const shown = (mimeType: string, data: string) => toModelOutput({ content: [{ type: "image", mimeType, data }] });
  expect(shown("image/png", "AAAA")).toMatchObject({ type: "content", value: [{ type: "file" }] });
  for (const [mimeType, data] of [
    ["image/svg+xml", "AAAA"],
    ["image/png", "not base64!"],
    ["image/png", "AAAA… [cut]"],
    ["image/evil\r\nx: y", "AAAA"],
  ] as const) {
    expect(shown(mimeType, data)).toMatchObject({ type: "text", value: expect.stringContaining("[image") as string });
  }
});
