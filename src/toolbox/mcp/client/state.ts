import { encodeFrame } from "../../../wire/encode.ts";
import type { McpServerState, McpState } from "../../../wire/frames.ts";
import type { McpConnection } from "./connection.ts";
import { withoutWords } from "./failure.ts";

/** What clients are told of an agent's servers. Pure: no secrets are in it but `auth_url`, which people need. */
export function mcpState(connections: Iterable<Pick<McpConnection, "info" | "catalogue">>): McpState {
  const servers: Record<string, McpServerState> = {};
  const tools: unknown[] = [];
  const prompts: unknown[] = [];
  const resources: unknown[] = [];
  for (const { info, catalogue } of connections) {
    const { id: serverId, name, url, authUrl, state, instructions, capabilities } = info;
    const error = info.error === null ? null : withoutWords(info.error);
    servers[serverId] = { name, server_url: url, auth_url: authUrl, state, error, instructions, capabilities };
    // What cannot be used now is not offered.
    if (!isUsable({ state })) continue;
    tools.push(...catalogue.tools.map((tool) => ({ serverId, ...tool })));
    prompts.push(...catalogue.prompts.map((prompt) => ({ serverId, ...prompt })));
    resources.push(...catalogue.resources.map((resource) => ({ serverId, ...resource })));
  }
  return { servers, tools, prompts, resources };
}

/** Whether the tools of a server can be called: also while its connection is made again. */
export function isUsable({ state }: Pick<McpConnection, "state">): boolean {
  return state === "ready" || state === "connecting" || state === "connected" || state === "discovering";
}

/** The frame for it. */
export function mcpFrame(state: McpState): string {
  return encodeFrame({ type: "cf_agent_mcp_servers", mcp: state });
}
