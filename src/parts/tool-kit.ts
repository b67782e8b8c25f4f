import type { ToolSet } from "ai";
import { createEgress } from "../toolbox/egress/egress.ts";
import { ExtensionManager, type ExtensionManagerOptions } from "../toolbox/extension/manager.ts";
import type { ExtensionBridge } from "../toolbox/extension/host-functions.ts";
import type { ExtensionDeclaration } from "../toolbox/extension/manifest.ts";
import type { McpClientManager } from "../toolbox/mcp/client/manager.ts";
import type { AgentHost } from "../port.ts";
import type { ContextBlocks } from "../memory/context-blocks.ts";
import { skillsForTurn, type TurnSkills } from "../toolbox/skill/for-turn.ts";
import { SkillRegistry } from "../toolbox/skill/registry.ts";
import type { SkillScriptRunner, SkillSource } from "../toolbox/skill/types.ts";
import { type BashToolOptions, bashToolMissing } from "../toolbox/workspace/bash-tool.ts";
import { keptIn } from "../toolbox/workspace/kept-files.ts";
import { createWorkspaceTools, type WorkspaceToolsOptions } from "../toolbox/workspace/tools/create-workspace-tools.ts";
import type { WorkspaceLike } from "../toolbox/workspace/types.ts";
import type { Watchers } from "../turn/policy.ts";
import { waitForMcp } from "./mcp.ts";

/** Tools that a session may have. */
const CONTEXT_TOOLS = ["set_context", "load_context", "unload_context", "search_context", "session_search"];

type Maybe<T> = T | Promise<T>;

/** What the kit adds to a turn. */
interface TurnKit {
  /** What the model is told about it. */
  readonly prompt: string;
  readonly tools: ToolSet;
}

/** What the kit is made from: the part of a `Think` that users write. */
export interface KitSettings {
  readonly workspaceTools: Omit<WorkspaceToolsOptions, "bash"> | boolean;
  readonly workspaceBash: boolean | BashToolOptions;
  readonly includeMcpTools: boolean;
  readonly waitForMcpConnections: boolean | { readonly timeout?: number };
  readonly extensionLoader: ExtensionManagerOptions["loader"] | undefined;
  getWorkspace(): WorkspaceLike | null;
  getSkills(): Maybe<readonly SkillSource[]>;
  getSkillScriptRunner(): Maybe<SkillScriptRunner | null>;
  getExtensions(): Maybe<readonly ExtensionDeclaration[]>;
}

/** What the kit needs of the agent besides. */
interface KitAgent {
  readonly host: AgentHost;
  /** Undefined when the agent has no MCP servers. */
  mcp(): McpClientManager | undefined;
  /** What the agent does for extensions. */
  bridge(): ExtensionBridge;
  /** Something failed that no caller waits for. Must not throw. */
  failed(error: unknown): void;
}

/** Gathers what is built in and what others bring: files, skills, extensions, MCP servers. */
export class ToolKit {
  readonly #settings: KitSettings;
  readonly #agent: KitAgent;
  /** Made once for as long as the settings stay the same: a tool is the same object from turn to turn. */
  #files: { readonly of: readonly unknown[]; readonly tools: ToolSet } | undefined;
  #skills: { readonly of: readonly SkillSource[]; readonly registry: SkillRegistry } | undefined;
  #extensions: ExtensionManager | undefined;
  /** Names that other tools had in a turn of this life: nothing that is loaded may take one. */
  readonly #names = new Set<string>();

  constructor(settings: KitSettings, agent: KitAgent) {
    this.#settings = settings;
    this.#agent = agent;
  }

  /** Undefined where the class does not load extensions. */
  get extensions(): ExtensionManager | undefined {
    const { extensionLoader: loader } = this.#settings;
    if (loader === undefined) return undefined;
    const { host } = this.#agent;
    return (this.#extensions ??= new ExtensionManager({
      ...{ loader, host },
      egress: (allow) =>
        createEgress({ allow, onDecision: (decision) => host.emit("network:decided", { ...decision }) }),
      bridge: () => this.#agent.bridge(),
      reserved: () => this.#names,
      failed: (error) => this.#agent.failed(error),
    }));
  }

  get watchers(): Watchers | undefined {
    return this.extensions?.hooks;
  }

  /** @param others names of tools that the turn has besides. @param blocks of its session: extensions may bring more. */
  async ofTurn(others: readonly string[], blocks: ContextBlocks | undefined, resumes = false): Promise<TurnKit> {
    const files = await this.#fileTools();
    const skills = await this.#skillTools();
    // A call that was cut off, or approved long after it was asked for, may be of a tool that is connected only in a moment.
    const mcp = await this.#mcpTools(resumes);
    const taken = [...others, ...CONTEXT_TOOLS, ...Object.keys({ ...files, ...skills.tools, ...mcp })];
    for (const name of taken) this.#names.add(name);
    const extended = await this.#extended(blocks, taken);
    return { prompt: skills.prompt, tools: { ...files, ...skills.tools, ...extended, ...mcp } };
  }

  halt(): void {
    void this.#extensions?.dispose();
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
      this.#files = {
        of,
        tools: createWorkspaceTools(workspace, {
          ...this.#usual,
          ...(workspaceTools === true ? {} : workspaceTools),
          bash,
        }),
      };
    return this.#files.tools;
  }

  /** What a model has seen of a picture stays, whatever becomes of the file. */
  get #usual() {
    const { host } = this.#agent;
    return { keep: keptIn(host), breathe: () => host.breathe() };
  }

  async #skillTools(): Promise<TurnSkills> {
    const sources = await this.#settings.getSkills();
    if (sources.length === 0) return { prompt: "", tools: {} };
    const known = this.#skills;
    // A class may make its sources anew each time: they are the same if they say so.
    const isSame = known?.of.length === sources.length && known.of.every(({ id }, i) => id === sources[i]?.id);
    const onWarning = ({ message }: { readonly message: string }) => this.#agent.failed(new Error(message));
    const skills = isSame ? known : { of: sources, registry: new SkillRegistry(sources, { onWarning }) };
    this.#skills = skills;
    return skillsForTurn(skills.registry, (await this.#settings.getSkillScriptRunner()) ?? undefined);
  }

  async #extended(blocks: ContextBlocks | undefined, taken: readonly string[]): Promise<ToolSet> {
    const { extensions } = this;
    if (extensions === undefined) return {};
    await extensions.declare(await this.#settings.getExtensions());
    for (const { label, description, maxTokens } of extensions.contextBlocks()) {
      if (blocks === undefined || blocks.getContextBlock(label) !== undefined) continue;
      const options = {
        ...(description !== undefined && { description }),
        ...(maxTokens !== undefined && { maxTokens }),
      };
      await blocks.addContext(label, options);
    }
    return extensions.getTools(taken);
  }

  async #mcpTools(resumes: boolean): Promise<ToolSet> {
    const { includeMcpTools, waitForMcpConnections: wait } = this.#settings;
    const manager = includeMcpTools ? this.#agent.mcp() : undefined;
    if (manager === undefined) return {};
    await waitForMcp(manager, wait === false ? resumes : wait);
    return manager.getAITools();
  }
}
