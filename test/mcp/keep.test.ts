// Servers are stored with the agent: the same one again, options that change, removal, restarts, servers that are down.
import type { McpServer } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { openMcp } from "./agent.ts";
import { startMcp } from "./mcp-servers.ts";

const quick = { retry: { maxAttempts: 2, baseDelayMs: 1, maxDelayMs: 1 } };

function named(server: McpServer): void {
  server.registerTool("who", {}, () => ({ content: [{ type: "text", text: "me" }] }));
}

test("the same name and URL again is the same server; another name is another one", async () => {
  const server = await startMcp("modern", named);
  const agent = await openMcp();
  const mcp = await agent.mcp();
  const [a, b] = await Promise.all([mcp.addServer("one", server.url), mcp.addServer("one", server.url)]);
  expect(b).toEqual(a);
  const asked = server.requests.length;
  expect(await mcp.addServer("one", `${server.url.toUpperCase().replace("/MCP", "/mcp")}/`)).toEqual(a);
  expect(server.requests.length).toBe(asked);
  const other = await mcp.addServer("two", server.url);
  expect(other.id).not.toBe(a.id);
  expect(mcp.listServers()).toHaveLength(2);
  await expect(mcp.addServer("three", server.url, { id: other.id })).rejects.toMatchObject({ code: "conflict" });
});

test("new options are stored and used", async () => {
  const server = await startMcp("modern", named);
  const agent = await openMcp();
  const mcp = await agent.mcp();
  const { id } = await mcp.addServer("one", server.url, { transport: { headers: { authorization: "Bearer old" } } });
  server.requests.length = 0;
  await mcp.addServer("one", server.url, { transport: { headers: { authorization: "Bearer new" } } });
  await mcp.callTool({ serverId: id, name: "who" });
  expect(new Set(server.requests.map(({ headers }) => headers.get("authorization")))).toEqual(new Set(["Bearer new"]));
});

test("after a restart servers are connected again without anybody asking, and removed ones are not", async () => {
  const server = await startMcp("sessions", named);
  const agent = await openMcp();
  const mcp = await agent.mcp();
  const kept = await mcp.addServer("kept", server.url, {
    id: "Kept Server!",
    transport: { headers: { "x-key": "k" } },
  });
  const gone = await mcp.addServer("gone", server.url);
  expect(kept.id).toBe("kept-server");
  await mcp.removeServer(gone.id);
  expect(server.requests.at(-1)).toMatchObject({ method: "DELETE" });
  await mcp.removeServer("never-there");
  server.requests.length = 0;
  await agent.restart();
  const again = await agent.mcp();
  expect(again.listServers()).toMatchObject([{ id: kept.id, name: "kept" }]);
  await again.waitForConnections();
  expect(again.listServers()).toMatchObject([{ state: "ready" }]);
  expect(Object.keys(again.getAITools())).toEqual(["tool_keptserver_who"]);
  expect(server.requests[0]?.headers.get("x-key")).toBe("k");
  expect(await agent.rows("mcp")).toHaveLength(1);
});

test("a server that is down is said to be so, is stored, and is used when it is back", async () => {
  const server = await startMcp("modern", named);
  await server.stop();
  const agent = await openMcp();
  const mcp = await agent.mcp();
  await expect(mcp.addServer("down", server.url, quick)).rejects.toMatchObject({
    code: "disconnected",
    message: expect.stringContaining('The MCP server "down" could not be used'),
  });
  const [info] = mcp.listServers();
  expect(info).toMatchObject({ state: "failed", error: expect.stringContaining("ECONNREFUSED") });
  expect(mcp.getAITools()).toEqual({});
  expect(mcp.state().servers[info?.id ?? ""]).toMatchObject({ state: "failed" });
  await server.restart();
  expect(await mcp.callTool({ serverId: info?.id ?? "", name: "who" })).toMatchObject({ content: [{ text: "me" }] });
  expect(mcp.listServers()).toMatchObject([{ state: "ready", error: null }]);
});

test("waiting ends in time while a server does not answer, and the agent is not held up", async () => {
  const server = await startMcp("modern", named, () => new Promise(() => {}));
  const agent = await openMcp();
  const mcp = await agent.mcp();
  const adding = mcp.addServer("slow", server.url).catch((error: unknown) => error);
  await mcp.waitForConnections({ timeout: 0 });
  await mcp.waitForConnections({ timeout: 20 });
  expect(mcp.listServers()).toMatchObject([{ state: "connecting" }]);
  const [info] = mcp.listServers();
  await mcp.removeServer(info?.id ?? "");
  expect(await adding).toMatchObject({ code: "disconnected" });
});

test("many servers at one time", async () => {
  const server = await startMcp("sessions", named);
  const agent = await openMcp();
  const mcp = await agent.mcp();
  const added = await Promise.all(Array.from({ length: 30 }, (_, n) => mcp.addServer(`s${n}`, server.url)));
  expect(added.every(({ state }) => state === "ready")).toBe(true);
  expect(Object.keys(mcp.getAITools())).toHaveLength(30);
  expect(Object.keys(mcp.getAITools({ serverName: ["s1", "s2"] }))).toHaveLength(2);
  expect(mcp.listTools({ serverId: added[0]?.id ?? "" })).toHaveLength(1);
});

test("clients are told of servers and their catalogues, without keys", async () => {
  const server = await startMcp("modern", named);
  const agent = await openMcp();
  const mcp = await agent.mcp();
  expect(mcp.frame()).toBe(
    '{"type":"cf_agent_mcp_servers","mcp":{"servers":{},"tools":[],"prompts":[],"resources":[]}}',
  );
  const { id } = await mcp.addServer("calc", `${server.url}?key=secret`, {
    transport: { headers: { authorization: "Bearer secret" } },
  });
  expect(mcp.frame()).not.toContain("secret");
  expect(JSON.parse(mcp.frame())).toMatchObject({
    mcp: {
      servers: {
        [id]: {
          name: "calc",
          server_url: `${server.url}?…`,
          auth_url: null,
          state: "ready",
          error: null,
          instructions: "Ask nicely.",
        },
      },
      tools: [{ serverId: id, name: "who", inputSchema: { type: "object" } }],
      prompts: [],
      resources: [],
    },
  });
});
