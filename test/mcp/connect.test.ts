// Servers of every generation: found, used, kept, and used again after a restart.
import type { McpServer } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { z } from "zod";
import { openMcp } from "./agent.ts";
import { type Generation, startMcp } from "./mcp-servers.ts";

function adder(server: McpServer): void {
  server.registerTool(
    "add",
    {
      description: "Adds two numbers.",
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      annotations: { readOnlyHint: true },
    },
    ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }] }),
  );
  server.registerPrompt("greet", { description: "A greeting." }, () => ({
    messages: [{ role: "user", content: { type: "text", text: "Hello" } }],
  }));
  server.registerResource("notes", "notes://all", { mimeType: "text/plain" }, () => ({
    contents: [{ uri: "notes://all", text: "All notes" }],
  }));
}

test.each<[Generation, string]>([
  ["modern", "2026-07-28"],
  ["sessions", "2025-11-25"],
  ["sse", "2025-11-25"],
])("a server of the generation %s is used for tools, prompts and resources", async (generation, version) => {
  const server = await startMcp(generation, adder);
  const agent = await openMcp();
  const mcp = await agent.mcp();
  const added = await mcp.addServer("calc", server.url, { transport: { headers: { "x-key": "k1" } } });
  expect(added).toEqual({ id: expect.any(String), state: "ready" });
  const serverId = added.id;
  expect(mcp.listServers()).toEqual([
    {
      id: serverId,
      name: "calc",
      url: server.url,
      state: "ready",
      error: null,
      authUrl: null,
      instructions: "Ask nicely.",
      capabilities: expect.objectContaining({ tools: expect.anything() }),
      protocolVersion: version,
      warnings: [],
    },
  ]);
  expect(mcp.listTools()).toMatchObject([{ serverId, name: "add", annotations: { readOnlyHint: true } }]);
  expect(mcp.listPrompts()).toMatchObject([{ serverId, name: "greet" }]);
  expect(mcp.listResources()).toMatchObject([{ serverId, uri: "notes://all" }]);
  expect(await mcp.callTool({ serverId, name: "add", arguments: { a: 1, b: 2 } })).toEqual({
    content: [{ type: "text", text: "3" }],
  });
  expect(await mcp.getPrompt({ serverId, name: "greet" })).toMatchObject({ messages: [{ role: "user" }] });
  expect(await mcp.readResource({ serverId, uri: "notes://all" })).toMatchObject({ contents: [{ text: "All notes" }] });
  expect(server.requests.every(({ headers }) => headers.get("x-key") === "k1")).toBe(true);
  expect(agent.told()).toBeGreaterThan(0);
});
