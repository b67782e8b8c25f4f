// An agent with MCP servers on a real host whose rows outlive it.
import { Agent, type AgentHost } from "perdure";
import { memoryStorage, serve, type ServedHost } from "perdure/node";
import { onTestFinished } from "vitest";
import { AgentMcp, MCP_ROUTES } from "../../src/parts/mcp.ts";
import { routeTable } from "../../src/door/routes.ts";
import { parts } from "../../src/parts/part.ts";
import { McpClientManager, type McpClientManagerOptions } from "../../src/toolbox/mcp/client/manager.ts";

/** An agent under test. */
export interface McpAgent {
  /** Of the life that runs now. */
  mcp(): Promise<McpClientManager>;
  /** How often the state was told. */
  readonly told: () => number;
  readonly url: () => string;
  /** Ends the process's part of everything and starts again on the same rows. */
  restart(): Promise<void>;
  rows(prefix: string): Promise<{ key: string; value: string }[]>;
}

export async function openMcp(
  options: Partial<Omit<McpClientManagerOptions, "host" | "changed">> = {},
): Promise<McpAgent> {
  let told = 0;
  let manager: McpClientManager | undefined;
  let port: AgentHost | undefined;
  class Holder extends Agent {
    constructor(host: AgentHost) {
      super(host);
      const made = new McpClientManager({ ...options, host, changed: () => told++ });
      [manager, port] = [made, host];
      // In the place of the agent's own, so that it can be made with other options.
      const { parts: own } = this[parts];
      own.splice(0, own.length, ...own.filter((one) => !(one instanceof AgentMcp)));
      own.push({
        started: () => made.started(),
        routes: routeTable(MCP_ROUTES, made),
        halt: () => made.halt(),
        left: () => made.halt(),
      });
    }
    ping() {
      return "pong";
    }
  }
  const storage = memoryStorage();
  const open = () => serve({ agents: { Holder }, storage, port: 0, hostname: "127.0.0.1", idleMs: 1e9 });
  let host: ServedHost = await open();
  onTestFinished(() => host.stop());
  const wake = async () => {
    await host.getAgentByName(Holder, "one").ping();
    if (manager === undefined || port === undefined) throw new Error("The agent was not made.");
    return { manager, port };
  };
  return {
    mcp: async () => (await wake()).manager,
    told: () => told,
    url: () => host.url,
    restart: async () => {
      await host.stop();
      host = await open();
    },
    rows: async (prefix) =>
      (await wake()).port.sql<{ key: string; value: string }>(
        "SELECT key, value FROM perdure_cell WHERE key LIKE ? || '%'",
        prefix,
      ),
  };
}
