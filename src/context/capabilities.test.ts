import { jsonSchema, tool, type ToolSet } from "ai";
import { expect, test } from "vitest";
import { capabilityBlock, DEFAULT_SYSTEM_PROMPT, withOrigin } from "./capabilities.ts";

const inputSchema = jsonSchema({ type: "object" });
const server = tool({ inputSchema, execute: () => 1 });
const client = tool({ inputSchema });
const provider: ToolSet[string] = tool({
  type: "provider",
  id: "x.search",
  args: {},
  inputSchema,
  isProviderExecuted: true,
});
const named = (...names: string[]): ToolSet => Object.fromEntries(names.map((name) => [name, server]));

test("without tools there is nothing to tell", () => {
  expect(capabilityBlock({})).toBe("");
});

test("the block names all tools and stands apart from the prompt before it", () => {
  expect(capabilityBlock(named("b", "a"))).toBe("\nTools of this turn:\n- b, a");
  expect(DEFAULT_SYSTEM_PROMPT + capabilityBlock(named("a"))).toMatch(/undone\.\nTools of this turn:/);
});

test.each([
  ["read", "workspace of files"],
  ["edit_file", "workspace of files"],
  ["bash", "shell commands"],
  ["execute", "sandbox"],
  ["set_context", "context blocks"],
  ["session_search", "said earlier"],
  ["activate_skill", "skills"],
  ["load_extension", "extensions"],
])("a tool %j tells of the %s", (name, words) => {
  expect(capabilityBlock(named(name))).toContain(words);
  expect(capabilityBlock(named("other"))).not.toContain(words);
});

test("several tools of a kind tell of it once", () => {
  const block = capabilityBlock(named("read", "write", "grep"));
  expect(block.match(/workspace/g)).toHaveLength(1);
});

test("tools that the client runs are named as such; a provider's are not", () => {
  const block = capabilityBlock({ look: server, locate: client, pick: client, search: provider });
  expect(block).toContain("- These run on the user's device: locate, pick.");
  expect(capabilityBlock({ look: server, search: provider })).not.toContain("device");
});

test("names that every object has are no tools", () => {
  expect(capabilityBlock(named("toString"))).toBe("\nTools of this turn:\n- toString");
});

test("the same tools give the same bytes", () => {
  const tools = { ...named("read", "bash"), locate: client };
  expect(capabilityBlock({ ...tools })).toBe(capabilityBlock(tools));
});

test("tools of MCP servers, extensions and other agents are told with where they come from", () => {
  const make = () => tool({ inputSchema, execute: () => 1 });
  const block = capabilityBlock({
    weather_now: withOrigin(make(), { kind: "mcp", name: "weather" }),
    weather_week: withOrigin(make(), { kind: "mcp", name: "weather" }),
    notes_add: withOrigin(make(), { kind: "extension", name: "notes" }),
    research: { ...withOrigin(make(), { kind: "agent", name: "Researcher" }) },
  });
  expect(block).toContain("MCP servers: weather (weather_now, weather_week).");
  expect(block).toContain("extensions: notes (notes_add).");
  expect(block).toContain("other agents, which know only what you tell them: Researcher (research).");
  expect(capabilityBlock(named("weather_now"))).not.toMatch(/MCP|extension|other agents/);
});

test("many tools of one server are told by their number", () => {
  const all = Object.fromEntries(
    Array.from({ length: 9 }, (_, i) => [
      `t${i}`,
      withOrigin(tool({ inputSchema, execute: () => 1 }), { kind: "mcp", name: "big" }),
    ]),
  );
  expect(capabilityBlock(all)).toContain("MCP servers: big (9 tools).");
});
