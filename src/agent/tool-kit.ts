import type { ToolSet } from "ai";
import type { McpClientManager } from "../mcp/client/manager.ts";
import { type BashToolOptions, bashToolMissing } from "../workspace/bash-tool.ts";
import { createWorkspaceTools, type WorkspaceToolsOptions } from "../workspace/tools/create-workspace-tools.ts";
import type { WorkspaceLike } from "../workspace/types.ts";

/** The tools that an agent has without writing them. Under a symbol: every plain name belongs to the user. */
export const toolKit: unique symbol = Symbol("perdure.tool-kit");

/** How long a turn waits for MCP servers that are being connected, where the class only says that it does. */
const MCP_WAIT_MS = 10_000;

/** What the kit adds to a turn. */
export interface TurnKit {
  /** What the model is told about it. */
  readonly prompt: string;
  readonly tools: ToolSet;
}

/** What the kit is made from: the part of a `Think` that users write. */
export interface KitSettings {
  readonly workspaceTools: Omit<WorkspaceToolsOptions, "bash"> | false;
  readonly workspaceBash: boolean | BashToolOptions;
  readonly includeMcpTools: boolean;
  readonly waitForMcpConnections: boolean | { readonly timeout?: number };
  getWorkspace(): WorkspaceLike | null;
}

/** Gathers what is built in and what others bring: files, MCP servers. */
export class ToolKit {
  readonly #settings: KitSettings;
  readonly #mcp: () => McpClientManager | undefined;
  /** Made once for as long as the settings stay the same: a tool is the same object from turn to turn. */
  #files: { readonly of: readonly unknown[]; readonly tools: ToolSet } | undefined;

  /** @param mcp undefined when the agent has no MCP servers. */
  constructor(settings: KitSettings, mcp: () => McpClientManager | undefined) {
    this.#settings = settings;
    this.#mcp = mcp;
  }

  async ofTurn(): Promise<TurnKit> {
    return { prompt: "", tools: { ...(await this.#fileTools()), ...(await this.#mcpTools()) } };
  }

  async #fileTools(): Promise<ToolSet> {
    const { workspaceTools, workspaceBash } = this.#settings;
    const workspace = this.#settings.getWorkspace();
    if (workspace === null || workspaceTools === false) return {};
    // Where there is no shell the model is not told of one.
    const sandbox = typeof workspaceBash === "object" ? workspaceBash.sandbox : undefined;
    const bash = workspaceBash !== false && (await bashToolMissing(sandbox)) === undefined ? workspaceBash : false;
    const of = [workspace, workspaceTools, bash];
    if (this.#files === undefined || this.#files.of.some((item, i) => item !== of[i]))
      this.#files = { of, tools: createWorkspaceTools(workspace, { ...workspaceTools, bash }) };
    return this.#files.tools;
  }

  async #mcpTools(): Promise<ToolSet> {
    const { includeMcpTools, waitForMcpConnections: wait } = this.#settings;
    const manager = includeMcpTools ? this.#mcp() : undefined;
    if (manager === undefined) return {};
    await waitForMcp(manager, wait);
    return manager.getAITools();
  }
}

/** Waits for connections as a class has asked for. */
export async function waitForMcp(
  manager: McpClientManager,
  wait: boolean | { readonly timeout?: number },
): Promise<void> {
  if (wait !== false) await manager.waitForConnections({ timeout: MCP_WAIT_MS, ...(wait === true ? {} : wait) });
}
