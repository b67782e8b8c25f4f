import { PerdureError } from "../base/error.ts";
import type { ExtensionBridge } from "../toolbox/extension/host-functions.ts";
import type { ExtensionManager, ExtensionManagerOptions } from "../toolbox/extension/manager.ts";
import type { ExtensionDeclaration } from "../toolbox/extension/manifest.ts";
import { newId } from "../base/id.ts";
import type { Identity } from "../base/identity.ts";
import type { AgentEnv, AgentHost, HostedAgentClass } from "../port.ts";
import type { SkillScriptRunner, SkillSource } from "../toolbox/skill/types.ts";
import type { ActionAuthorization, ActionAuthorizationContext } from "../tool/action-authorize.ts";
import { type ActionRecord, RECLAIM_AFTER_MS } from "../tool/action-ledger.ts";
import { type AnyAction, isAction } from "../tool/action.ts";
import { lendAction } from "../tool/action-bind.ts";
import type { BackgroundCalls } from "../turn/step/background.ts";
import type { BackgroundCall } from "../turn/step/background-note.ts";
import type { TurnContext } from "../turn/step/config.ts";
import type { BashToolOptions } from "../toolbox/workspace/bash-tool.ts";
import { sharedWorkspace } from "../toolbox/workspace/remote.ts";
import { callWorkspace, type WorkspaceAccess } from "../toolbox/workspace/serve.ts";
import type { WorkspaceToolsOptions } from "../toolbox/workspace/tools/create-workspace-tools.ts";
import type { PointChange, RestoreResult, WorkspaceFiles, WorkspaceLike } from "../toolbox/workspace/types.ts";
import { Workspace } from "../toolbox/workspace/workspace.ts";
import type { WorkspaceOptions } from "../toolbox/workspace/workspace-options.ts";
import { messagesIn } from "../turn/engine/history.ts";
import { mcpOf } from "./agent-mcp.ts";
import { chatRoom } from "./chat-agent.ts";
import { FilePoints } from "./file-points.ts";
import { InboxAgent } from "./inbox-agent.ts";
import { backgroundCalls, DEFAULT_MAX_BACKGROUND } from "./think-background.ts";
import type { ActionRules, ThinkActions } from "./think-actions.ts";
import { parts } from "./parts.ts";
import { sessionNow } from "./turn-now.ts";
import { sessionOf } from "./session-agent.ts";
import { type KitSettings, ToolKit, toolKit } from "./tool-kit.ts";

/** What ties files to messages. Under a symbol: every plain name belongs to the user. */
export const filePoints: unique symbol = Symbol("perdure.file-points");

/** Where actions are kept. Under a symbol: every plain name belongs to the user. */
export const actionsOf: unique symbol = Symbol("perdure.actions-of");

type Maybe<T> = T | Promise<T>;

/** Who answered, and whether the turn goes on by itself. */
interface ExecutionAnswer {
  readonly approver?: string;
  readonly identity?: Identity;
  readonly autoContinue?: boolean;
  readonly session?: string;
}

/** What an agent has that runs tools by itself: those that are built in, and the rules for them. */
export abstract class ToolAgent<Env extends object = AgentEnv, State = unknown, Props extends object = object>
  extends InboxAgent<Env, State, Props>
  implements ActionRules, KitSettings
{
  /** @internal */
  readonly [toolKit]: ToolKit;
  /** @internal */
  readonly [filePoints]: FilePoints;
  /** @internal */
  abstract get [actionsOf](): ThinkActions;
  /** @internal */
  abstract readonly [backgroundCalls]: BackgroundCalls;

  constructor(host: AgentHost) {
    super(host);
    this.workspace = new Workspace({ host });
    this[filePoints] = new FilePoints(host, () => this.getWorkspace());
    this[toolKit] = new ToolKit(this, {
      host,
      mcp: () => this[mcpOf].used,
      bridge: () => this.#bridge,
      failed: (error) => this[chatRoom].chat.hooks.failed(error),
    });
    this[parts].features.push({
      lend: (value) => (isAction(value) ? lendAction(value, this[actionsOf].binding()) : undefined),
    });
    this[parts].features.push({ halt: () => this[toolKit].halt(), left: () => this[toolKit].halt() });
  }

  // Files

  /**
   * The agent's files: in its own store, there after a restart, and on hand in every turn as tools. Replace it to keep
   * large files elsewhere ({@link ToolAgent.createWorkspace}), to use a folder of the machine, or the files of a parent.
   */
  workspace: WorkspaceFiles;
  /** How the model is given files; `false`: not at all. */
  workspaceTools: Omit<WorkspaceToolsOptions, "bash"> | boolean = {};
  /** Whether there is a tool `bash` beside them, and how it runs commands. It needs the package `just-bash`. */
  workspaceBash: boolean | BashToolOptions = true;

  /** What file tools work on; `null`: there are none. Asked for every turn. Default: {@link ToolAgent.workspace}. */
  getWorkspace(): WorkspaceLike | null {
    return this.workspace;
  }

  /** A workspace in this agent's store with settings of your own: `override workspace = this.createWorkspace({ … })`. */
  protected createWorkspace(options: Omit<WorkspaceOptions, "host"> = {}): Workspace {
    return new Workspace({ ...options, host: this[parts].host });
  }

  /** What children may do with this agent's files; `false`: nothing. See {@link ToolAgent.parentWorkspace}. */
  shareWorkspace: WorkspaceAccess | false = false;

  /** Does on the files what a child asks for. @throws PerdureError `not_allowed`, `read_only`, and as the workspace does */
  async callWorkspace(operation: string, args: readonly unknown[]): Promise<unknown> {
    const workspace = this.getWorkspace();
    if (this.shareWorkspace !== false && workspace !== null)
      return callWorkspace(workspace, operation, args, this.shareWorkspace);
    throw new PerdureError(
      "not_allowed",
      `${this.constructor.name} shares no files. Set shareWorkspace = "read-write".`,
    );
  }

  /** The files of the parent, for a child that works on them: `override workspace = this.parentWorkspace(Parent)`. */
  protected parentWorkspace(cls: HostedAgentClass<ToolAgent<object>>): WorkspaceFiles {
    return sharedWorkspace((operation, args) => this.parentAgent(cls).callWorkspace(operation, args));
  }

  /**
   * Makes all files what they were at a message: before a question was answered, after an answer. It can be taken back:
   * `workspace.restore(undo)`. @throws PerdureError `not_found`; `bad_state` when the files are not in the agent's own store
   */
  async restoreFiles(messageId: string): Promise<RestoreResult> {
    const result = this[filePoints].restore(messageId);
    await this[parts].host.durable();
    return result;
  }

  /** What changed in the files between two messages, or since one. @throws as {@link ToolAgent.restoreFiles} */
  diffFiles(from: string, to?: string): Promise<PointChange[]> {
    return this[filePoints].diff(from, to);
  }

  /** With `restoreFiles`, the files are made what they were there. Without, they stay what they are. */
  override switchBranch(
    messageId: string,
    { session, restoreFiles = false }: { readonly session?: string; readonly restoreFiles?: boolean } = {},
  ): string {
    const { host } = this[parts];
    const go = () => super.switchBranch(messageId, session === undefined ? {} : { session });
    if (!restoreFiles) return go();
    // Together or not at all.
    return host.tx(() => {
      const leaf = go();
      this[filePoints].restore(leaf);
      return leaf;
    });
  }

  // Skills

  /**
   * Where the agent's skills come from; of two skills of one name the first counts. Asked for every turn. A source that
   * fails is passed over, and `onError` is told.
   */
  getSkills(): Maybe<readonly SkillSource[]> {
    return [];
  }

  /** What runs the scripts of skills (`skills.runner({ … })`); `null`: skills are instructions and files only. */
  getSkillScriptRunner(): Maybe<SkillScriptRunner | null> {
    return null;
  }

  // Extensions

  /** What extensions run in; `true`: the sandbox that all agents of the process share. Without it there are none. */
  extensionLoader: ExtensionManagerOptions["loader"] | undefined = undefined;

  /** Extensions that the app brings, in the order in which their hooks are told. Asked for every turn. */
  getExtensions(): Maybe<readonly ExtensionDeclaration[]> {
    return [];
  }

  /** The agent's extensions. @throws PerdureError `bad_config` without {@link ToolAgent.extensionLoader} */
  get extensions(): ExtensionManager {
    const { extensions } = this[toolKit];
    if (extensions !== undefined) return extensions;
    throw new PerdureError("bad_config", `${this.constructor.name} loads no extensions. Set extensionLoader = true.`);
  }

  get #bridge(): ExtensionBridge {
    // Where it was asked: a guest serves all sessions, one call after the other.
    const session = sessionNow(this[chatRoom].chat);
    const blocks = async () => (await this[sessionOf](session)).blocks;
    return {
      workspace: this.getWorkspace() ?? undefined,
      getContext: async (label) => (await blocks()).getContextBlock(label)?.content ?? null,
      setContext: async (label, content) => void (await (await blocks()).replaceContextBlock(label, content)),
      isOfApp: async (label) => (await blocks()).isOfCode(label),
      getMessages: (limit) => messagesIn(this[chatRoom].chat, session).slice(-limit),
      sendMessage: async (text) => {
        const parts = [{ type: "text", text }] as const;
        await this.submitMessages([{ id: newId("msg"), role: "user", parts: [...parts] }], { session });
      },
      getSessionInfo: () => ({ id: session, messages: messagesIn(this[chatRoom].chat, session).length }),
    };
  }

  // Tools in the background

  /** How many tool calls may go on without their turns at one time. See `durableTool(…, { background })`. */
  maxBackgroundCalls = DEFAULT_MAX_BACKGROUND;

  /** Tool calls that go on without their turns, the oldest first; of one session and its views, if it is named. */
  listBackgroundCalls({ session }: { readonly session?: string } = {}): BackgroundCall[] {
    return this[backgroundCalls].list(session);
  }

  /** Stops such a call for good; the model is told. False when none of that id goes on. */
  async stopBackgroundCall(
    toolCallId: string,
    options: { readonly session?: string; readonly reason?: string } = {},
  ): Promise<boolean> {
    const stopped = this[backgroundCalls].stop(toolCallId, options);
    await this[parts].host.durable();
    return stopped;
  }

  // MCP servers

  /** Whether the tools of the agent's MCP servers are on hand in its turns. */
  includeMcpTools = true;
  /** Whether turns wait for MCP servers that are being connected, and for how long (default 10 s). */
  waitForMcpConnections: boolean | { readonly timeout?: number } = false;

  // Actions

  /**
   * When an action with a key that was cut off may be begun anew, in milliseconds after it began. Only where it has a
   * key of its own. `false`: never.
   */
  actionLedgerPendingRetryLeaseMs: number | boolean = RECLAIM_AFTER_MS;

  /** Tools for work that must not happen twice, by name; see `action()`. Asked for every turn. */
  getActions(): Maybe<Record<string, AnyAction>> {
    return {};
  }

  /** What the actions of a turn may do: everything (`true`), nothing, or what is named. If it throws, the turn ends. */
  authorizeTurn(_context: TurnContext): Maybe<ActionAuthorization> {
    return true;
  }

  /** Decides on one call of an action; nothing: what the turn was granted decides. A throw is a no. */
  authorizeAction(_context: ActionAuthorizationContext): Maybe<ActionAuthorization | void> {}

  /** The newest actions: what was done under which key, and what was begun and not finished. */
  listActions(limit?: number): ActionRecord[] {
    return this[actionsOf].ledger.list(limit);
  }

  /** Forgets an action, so that its key may be used again. False when there is none. */
  forgetAction(key: string): boolean {
    return this[actionsOf].ledger.forget(key);
  }

  /** Says yes to a call that waits, from wherever it is known: `pendingApprovals()` lists them. False when it does not wait. */
  approveExecution(toolCallId: string, options: ExecutionAnswer = {}): boolean {
    return this.answerApproval(toolCallId, true, options);
  }

  /** Says no to a call that waits; the model is told the reason. False when it does not wait. */
  rejectExecution(toolCallId: string, reason?: string, options: ExecutionAnswer = {}): boolean {
    return this.answerApproval(toolCallId, false, { ...options, ...(reason !== undefined && { reason }) });
  }
}
