// Servers that describe a tool as no client package reads it.
import { subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { openMcp } from "./agent.ts";
import { listen } from "./web-server.ts";

const good = { name: "good", inputSchema: { type: "object" } };
const ODD: readonly (readonly [string, object])[] = [
  ["without a schema", { name: "odd" }],
  ["with a schema that is a text", { name: "odd", inputSchema: "object" }],
  ["with a schema of a list", { name: "odd", inputSchema: { type: "array" } }],
  ["with a schema of null", { name: "odd", inputSchema: null }],
];

/** A server of two pages of tools. */
async function serverWith(odd: object): Promise<string> {
  const results: Record<string, (params: { cursor?: string }) => object> = {
    initialize: () => ({
      ...{ protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "odd", version: "1" } },
    }),
    "tools/list": ({ cursor }) => (cursor === undefined ? { tools: [odd], nextCursor: "2" } : { tools: [good] }),
    "tools/call": () => ({ content: [{ type: "text", text: "called" }] }),
  };
  const server = await listen(async (request) => {
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const { id, method, params } = (await request.json()) as { id?: number; method: string; params?: object };
    if (id === undefined) return new Response(null, { status: 202 });
    const result = results[method]?.(params ?? {});
    const error = { code: -32_601, message: "Method not found" };
    return Response.json({ jsonrpc: "2.0", id, ...(result === undefined ? { error } : { result }) });
  });
  onTestFinished(() => server.stop());
  return `${server.origin}/mcp`;
}

test.each(ODD)("a tool %s is left out, with words; its server and its other tools are there", async (_what, odd) => {
  const told: string[][] = [];
  onTestFinished(subscribe("mcp:connected", ({ payload }) => told.push(payload.warnings)));
  const mcp = await (await openMcp()).mcp();
  const { id: serverId, state } = await mcp.addServer("odd", await serverWith(odd));
  expect(state).toBe("ready");
  expect(mcp.listTools()).toMatchObject([{ name: "good" }]);
  const warnings = [expect.stringMatching(/^The tool "odd" was left out: it/) as unknown];
  expect(mcp.listServers()).toMatchObject([{ warnings }]);
  expect(told).toEqual([warnings]);
  expect(await mcp.callTool({ serverId, name: "good", arguments: {} })).toMatchObject({
    content: [{ text: "called" }],
  });
});
