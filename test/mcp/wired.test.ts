// MCP on agents as apps have them: their own servers, what clients are told, and agents that are servers themselves.
import type { McpServer } from "@modelcontextprotocol/server";
import { tool } from "ai";
import { Agent, type AgentHost, callable, Think } from "perdure";
import { agentMcpServer, createMcpHandler } from "perdure/mcp";
import { AgentClient } from "perdure/client";
import { memoryStorage, serve } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test, vi } from "vitest";
import { WebSocket } from "ws";
import { z } from "zod";
import type { McpState } from "../../src/wire/frames.ts";
import { openThink, outputsSent } from "../think/harness.ts";
import { startMcp } from "./mcp-servers.ts";
import { PATIENCE_MS } from "../support/until.ts";

function adder(server: McpServer): void {
  const inputSchema = z.object({ a: z.number(), b: z.number() });
  server.registerTool("add", { inputSchema }, ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }] }));
}

/** Another agent, as an MCP server. */
class Oracle extends Agent {
  static {
    callable(this, "fortune", { description: "Tells a fortune." });
  }
  fortune(sign: string) {
    return `${this.name}: a good day for ${sign}`;
  }
  readonly #mcp = createMcpHandler(
    agentMcpServer(this, {
      methods: "callable",
      tools: { toss: tool({ inputSchema: z.object({}), execute: () => "heads" }) },
    }),
  );
  override onRequest(request: Request) {
    return this.#mcp(request);
  }
}

class Hub extends Agent {
  static {
    callable(this, "join");
    callable(this, "ask");
  }
  async join(name: string, url: string) {
    const { id } = await this.addMcpServer(name, url, { id: name });
    return id;
  }
  async ask(serverId: string, name: string, given: Record<string, unknown>) {
    await this.mcp.waitForConnections();
    return (await this.mcp.callTool({ serverId, name, arguments: given })).content;
  }
}

test("clients are told of servers as they come, and an agent uses another one over MCP", async () => {
  const host = await serve({ agents: { Hub, Oracle }, storage: memoryStorage(), port: 0, hostname: "127.0.0.1" });
  onTestFinished(() => host.stop());
  const seen: McpState[] = [];
  const client = new AgentClient({
    agent: "Hub",
    name: "one",
    host: host.url,
    WebSocket: WebSocket as never,
    onMcpUpdate: (state) => void seen.push(state),
  });
  onTestFinished(() => client.close());
  await client.ready;
  const server = await startMcp("sessions", adder);
  expect(await client.call("join", ["calc", server.url])).toBe("calc");
  expect(await client.call("join", ["oracle", `${host.url}/agents/oracle/delphi`])).toBe("oracle");
  await vi.waitFor(() => expect(Object.keys(seen.at(-1)?.servers ?? {})).toEqual(["calc", "oracle"]), PATIENCE_MS);
  await vi.waitFor(() => expect(seen.at(-1)?.tools).toHaveLength(3), PATIENCE_MS);
  expect(seen[0]).toEqual({ servers: {}, tools: [], prompts: [], resources: [] });
  expect(await client.call("ask", ["calc", "add", { a: 2, b: 3 }])).toEqual([{ type: "text", text: "5" }]);
  expect(await client.call("ask", ["oracle", "fortune", { args: ["bees"] }])).toEqual([
    { type: "text", text: "delphi: a good day for bees" },
  ]);
  expect(await client.call("ask", ["oracle", "toss", {}])).toEqual([{ type: "text", text: "heads" }]);
});

test("an agent that leaves memory lets its connections go, and has them again in its next life", async () => {
  const server = await startMcp("sse", adder);
  const lives: Hub[] = [];
  class Idle extends Hub {
    constructor(port: AgentHost) {
      super(port);
      lives.push(this);
    }
    servers() {
      return this.getMcpServers();
    }
  }
  const host = await serve({ agents: { Idle }, storage: memoryStorage(), port: 0, hostname: "127.0.0.1", idleMs: 50 });
  onTestFinished(() => host.stop());
  const idle = host.getAgentByName(Idle, "one");
  await idle.join("calc", server.url);
  await vi.waitFor(() => expect(lives[0]?.mcp.listServers()).toMatchObject([{ state: "not-connected" }]), PATIENCE_MS);
  expect(await idle.ask("calc", "add", { a: 1, b: 1 })).toEqual([{ type: "text", text: "2" }]);
  expect(lives.length).toBeGreaterThan(1);
});

test("the tools of servers are the model's", async () => {
  const server = await startMcp("modern", adder);
  const model = scriptedModel([
    { toolCalls: [{ toolName: "tool_calc_add", input: { a: 20, b: 22 } }] },
    { text: "It is 42." },
  ]);
  class Bot extends Think {
    override waitForMcpConnections = true;
    override getModel() {
      return model;
    }
    async join(url: string) {
      await this.addMcpServer("calc", url, { id: "calc" });
    }
  }
  const host = await serve({ agents: { Bot }, storage: memoryStorage(), port: 0, hostname: "127.0.0.1" });
  onTestFinished(() => host.stop());
  const bot = host.getAgentByName(Bot, "one");
  await bot.join(server.url);
  await bot.runTurn({ input: "What is 20 + 22?" });
  // What the second call was given is what the tool said.
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain('{"type":"text","value":"42"}');
  expect(model.calls[0]?.tools.map(({ name }) => name)).toContain("tool_calc_add");
});

test("a tool of a server that was approved while the agent was away runs as soon as the server is there again", async () => {
  let paid = 0;
  const slow = async () => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    return undefined;
  };
  const build = (server: McpServer) => {
    server.registerTool("pay", {}, () => ({ content: [{ type: "text", text: `paid ${++paid}` }] }));
  };
  const server = await startMcp("modern", build, slow);
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "tool_bank_pay", input: {}, toolCallId: "c1" }] } : "Done.",
  );
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override beforeTurn() {
          return { toolApproval: { tool_bank_pay: "user-approval" } as never };
        }
      },
  );
  await (await kit.agent()).addMcpServer("bank", server.url, { id: "bank" });
  await kit.ask("Pay.");
  await kit.restart();
  expect((await kit.agent()).approveExecution("c1")).toBe(true);
  await expect.poll(() => model.calls.length).toBe(2);
  await kit.stable();
  expect(paid).toBe(1);
  expect(JSON.stringify(outputsSent(model, 1))).toContain("paid 1");
});
