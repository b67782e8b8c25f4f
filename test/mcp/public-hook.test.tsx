// The unmodified public `useAgent` sees the servers of an agent as they come and go.
import { render } from "../clients/react.tsx";
import type { McpServer } from "@modelcontextprotocol/server";
import { Agent } from "perdure";
import { expect, test } from "vitest";
import { eventually, startHost } from "../clients/harness.ts";
import { startMcp } from "./mcp-servers.ts";

class Hub extends Agent {
  add(url: string) {
    return this.addMcpServer("calc", url, { id: "calc" });
  }
}

function adder(server: McpServer): void {
  server.registerTool("add", { description: "Adds." }, () => ({ content: [] }));
}

test("onMcpUpdate is called for what comes and what goes", async () => {
  const server = await startMcp("modern", adder);
  const host = await startHost({ agents: { Hub } });
  const seen: { servers: object; tools: object[] }[] = [];
  const page = await render(host, { agent: "Hub", name: "x", onMcpUpdate: (state) => void seen.push(state) });
  await page.agent().ready;
  await eventually(() => expect(seen).toHaveLength(1));
  const hub = host.getAgentByName(Hub, "x");
  await hub.add(server.url);
  await eventually(() =>
    expect(seen.at(-1)).toMatchObject({
      servers: { calc: { name: "calc", server_url: server.url, auth_url: null, state: "ready", error: null } },
      tools: [{ serverId: "calc", name: "add", description: "Adds.", inputSchema: { type: "object" } }],
    }),
  );
  await hub.removeMcpServer("calc");
  await eventually(() => expect(seen.at(-1)).toEqual({ servers: {}, tools: [], prompts: [], resources: [] }));
});
