import { McpClientManager } from "../toolbox/mcp/client/manager.ts";
import { hasMcpServers } from "../toolbox/mcp/client/server-record.ts";
import { mcpFrame } from "../toolbox/mcp/client/state.ts";
import type { McpOAuthProvider } from "../toolbox/mcp/oauth/own-provider.ts";
import { currentAgent } from "./current.ts";
import type { AgentPart, OwnAgent } from "./part.ts";
import { type Route, type RouteTable, routeTable } from "../door/routes.ts";

/** How long a turn waits for servers that are being connected, where the class only says that it does. */
const MCP_WAIT_MS = 10_000;

/** What agents without servers tell their clients, who wait for this frame. */
const NO_SERVERS = mcpFrame({ servers: {}, tools: [], prompts: [], resources: [] });

/** What the manager asks of the class. */
export interface McpHooks {
  createMcpOAuthProvider(serverId: string, callbackUrl: string | undefined): McpOAuthProvider | undefined;
}

/** Where people come back to when they have signed in; a server may have an address of its own for it. */
export const MCP_ROUTES: readonly Route<McpClientManager>[] = [
  {
    method: "GET",
    shape: "callback",
    acts: ["mcp.signIn"],
    matches: (manager, request, rest) => manager.isReturn(request, rest),
    answer: ({ request }, manager) => manager.comeBack(request),
  },
];

/** Joins MCP servers to an agent. There is no manager until somebody asks for one, or servers are stored. */
export class AgentMcp implements AgentPart {
  readonly #own: OwnAgent;
  readonly #hooks: McpHooks;
  #manager: McpClientManager | undefined;

  constructor(own: OwnAgent, hooks: McpHooks) {
    this.#own = own;
    this.#hooks = hooks;
  }

  get manager(): McpClientManager {
    return (this.#manager ??= new McpClientManager({
      host: this.#own.host,
      origin: currentOrigin,
      changed: () => this.#tell(),
      createOAuthProvider: ({ serverId, callbackUrl }) => this.#hooks.createMcpOAuthProvider(serverId, callbackUrl),
    }));
  }

  /** The manager if anybody has asked for it. */
  get used(): McpClientManager | undefined {
    return this.#manager;
  }

  get greeting(): string {
    return this.#manager?.frame() ?? NO_SERVERS;
  }

  started(): void {
    // Servers come from the manager alone: without one there are none.
    if (this.#manager !== undefined || hasMcpServers(this.#own.host)) this.manager.started();
  }

  get routes(): RouteTable | undefined {
    return this.#manager && routeTable(MCP_ROUTES, this.#manager);
  }

  halt(): void {
    this.#manager?.halt();
  }

  left(): void {
    this.#manager?.halt();
  }

  #tell(): void {
    if (this.#own.halted) return;
    const { greeting } = this;
    for (const connection of this.#own.readers()) connection.send(greeting);
  }
}

/** Where the client that is being served has reached us. */
function currentOrigin(): string | undefined {
  const { request, connection } = currentAgent();
  const url = URL.parse(request?.url ?? connection?.uri ?? "");
  return url === null ? undefined : url.origin.replace(/^ws/, "http");
}

/** Waits for connections as a class has asked for. */
export async function waitForMcp(
  manager: McpClientManager,
  wait: boolean | { readonly timeout?: number },
): Promise<void> {
  if (wait !== false) await manager.waitForConnections({ timeout: MCP_WAIT_MS, ...(wait === true ? {} : wait) });
}
