import { refuseUnknown } from "../base/known-options.ts";
import { findOwnersBy } from "../base/owner.ts";
import { hostable, hosted } from "../port.ts";
import type { AgentEnv, AgentHost, AgentStep, HostedAgent, HostedAgentClass } from "../port.ts";
import type { McpClientManager } from "../toolbox/mcp/client/manager.ts";
import type { AddMcpServerOptions, AddMcpServerResult } from "../toolbox/mcp/client/types.ts";
import type { McpOAuthProvider } from "../toolbox/mcp/oauth/own-provider.ts";
import type { ChildRow } from "../store/child.ts";
import type { AgentStub } from "../stub.ts";
import type { Verdict } from "../wire/fetch-object.ts";
import type { McpState } from "../wire/frames.ts";
import type { JsonObject } from "../wire/json.ts";
import type { AppliedRowChange, RowWrite } from "../wire/row-frames.ts";
import { AgentMcp, mcpOf } from "./agent-mcp.ts";
import type { AgentCollection } from "./collection-access.ts";
import { CollectionFeature } from "./collection-feature.ts";
import type { RowOutcome, RowSource } from "./collection-keeper.ts";
import type { Collections } from "./collection-rules.ts";
import { Hosting } from "./hosted.ts";
import { ownerNow } from "./owner-now.ts";
import { type AgentParts, parts } from "./parts.ts";
import { AgentRuns } from "./run/agent-runs.ts";
import { bookCall, type Booked, type CallNote } from "./run/book-calls.ts";
import { type Counted, countRun, type Lineage } from "./run/lineage.ts";
import { runHooksOf, type TurnKeeper, turnKeeper, turnOver } from "./run/turn-keeper.ts";
import type {
  AgentToolLifecycleResult,
  AgentToolProgressSnapshot,
  AgentToolRunInfo,
  AgentToolRunStatus,
  DetachedRunAgentToolOptions,
  DetachedRunAgentToolResult,
  RunAgentToolOptions,
  RunAgentToolResult,
} from "./run/types.ts";
import { detachedNames, runNames } from "./run/types.ts";
import type { ChildClass } from "./sub-agents.ts";
import { WorkingAgent } from "./working-agent.ts";

const DEFAULT_MAX_DEPTH = 5;
const DEFAULT_MAX_RUNS = 100;
const DEFAULT_MAX_BUDGET_MS = 24 * 60 * 60 * 1000;
const DEFAULT_NO_PROGRESS_MS = 60 * 60 * 1000;

/**
 * One named, durable agent. Extend it, register the class with a host, and every name is an instance with
 * its own database, connections, timers and background work.
 *
 * ```ts
 * class Counter extends Agent<AgentEnv, { count: number }> {
 *   static { callable(this, "add"); }
 *   override initialState = { count: 0 };
 *   add(by: number) {
 *     this.setState({ count: this.state.count + by });
 *     return this.state.count;
 *   }
 * }
 * ```
 */
export class Agent<Env extends object = AgentEnv, State = unknown, Props extends object = object> extends WorkingAgent<
  Env,
  State,
  Props
> {
  /** @internal */
  static readonly [hostable] = true;
  readonly #runs: AgentRuns;
  readonly #rows: CollectionFeature;
  /** @internal */
  readonly [hosted]: HostedAgent;
  /** @internal */
  readonly [mcpOf]: AgentMcp;

  constructor(host: AgentHost) {
    super(host);
    findOwnersBy(ownerNow);
    this[hosted] = new Hosting(this);
    this.#runs = new AgentRuns(this[parts] as AgentParts<never>, runHooksOf(this));
    this[mcpOf] = new AgentMcp(this[parts] as AgentParts<unknown>, this);
    this.#rows = new CollectionFeature(this[parts] as AgentParts<unknown>, this);
    this[parts].features.push(this.#runs, this[mcpOf], this.#rows);
  }

  // Children

  /**
   * A child of this agent, with its own database, connections, timers and children; made on first use. Call
   * its methods on what this returns.
   * @throws PerdureError `unknown_agent` when the class is not registered, `bad_input` for an impossible name.
   */
  subAgent<C extends HostedAgentClass>(cls: C, name: string): Promise<AgentStub<InstanceType<C>>> {
    return this[parts].children.open(cls, name);
  }

  hasSubAgent(cls: ChildClass, name: string): boolean {
    return this[parts].children.has(cls, name);
  }

  /** The children in the order of their making. */
  listSubAgents(cls?: ChildClass): ChildRow[] {
    return this[parts].children.list(cls);
  }

  /** Ends a child's life in memory: its calls fail. Its rows stay, and it starts again on next use. */
  abortSubAgent(cls: ChildClass, name: string, reason?: unknown): void {
    this[parts].children.abort(cls, name, reason);
  }

  /** Deletes a child with all that it stored, and its children. Deleting what is not there does nothing. */
  deleteSubAgent(cls: ChildClass, name: string): Promise<void> {
    return this[parts].children.delete(cls, name);
  }

  /** The agent that this one is a child of. @throws PerdureError `bad_state` when it is none, or of another class. */
  parentAgent<C extends HostedAgentClass>(cls: C): AgentStub<InstanceType<C>> {
    return this[parts].children.parent(cls);
  }

  /**
   * Before a request or a socket from outside reaches a child: return a Response to refuse, a Request to
   * replace it, `{ identity }` to say who it is for the child and all below, nothing to let it pass. Who it is so far is
   * `getCurrentAgent().identity`. Not asked for frames on an open socket. What it throws is answered with 500 (or a close
   * that lets the client try again) and goes to {@link Agent.onError}.
   */
  onBeforeSubAgent(_request: Request, _child: AgentStep): Verdict | Promise<Verdict> {}

  // Collections

  /**
   * The collections that clients of `perdure/collections` may use, with the rules of each; `"*"` stands for all that are
   * not named. Asked once per life. Default: none.
   */
  getCollections(): Collections {
    return {};
  }

  /** One of the collections, to be read and written here. @throws PerdureError `not_found` when it is not declared. */
  collection<TRow extends object = JsonObject>(name: string): AgentCollection<TRow> {
    return this.#rows.open<TRow>(name);
  }

  /**
   * Writes rows of several collections: all, or none when a condition does not hold. Synchronous, and told to clients.
   * @throws PerdureError `not_found`, `bad_input`, `too_large`, `limit`, `read_only`, `fenced`. Nothing has changed then.
   */
  writeRows(write: RowWrite): RowOutcome {
    return this.#rows.write(write);
  }

  /** Rows have changed, and that is committed. Only watches: what it throws goes to {@link Agent.onError}. */
  onCollectionChange(_changes: readonly AppliedRowChange[], _source: RowSource): void | Promise<void> {}

  // MCP servers

  /** The agent's MCP servers: their tools, prompts and resources. They are stored, and connected in each life. */
  get mcp(): McpClientManager {
    return this[mcpOf].manager;
  }

  /**
   * Adds an MCP server and connects; the same name and URL again is the same server. `authenticating`: a person has to
   * visit `authUrl` first. Servers that are programs are added with `this.mcp.addStdioServer`.
   * @throws PerdureError `bad_input`, `conflict`, `limit`, `not_allowed` for a private address, `disconnected`
   */
  addMcpServer(name: string, url: string, options?: AddMcpServerOptions): Promise<AddMcpServerResult> {
    return this.mcp.addServer(name, url, options);
  }

  /** Forgets an MCP server, and what was signed in with. One that is not there is no error. */
  removeMcpServer(id: string): Promise<void> {
    return this.mcp.removeServer(id);
  }

  /** What clients are told of the MCP servers. */
  getMcpServers(): McpState {
    return this.mcp.state();
  }

  /** Signs in at MCP servers in a way of your own; nothing: as OAuth says, with what this agent stores. */
  createMcpOAuthProvider(_serverId: string, _callbackUrl: string | undefined): McpOAuthProvider | undefined {
    return undefined;
  }

  // Work for children

  /** The most runs that may be open at one time; more end with an error. */
  maxConcurrentAgentTools = Number.POSITIVE_INFINITY;
  /**
   * How deep agents may start agents that start agents, with `agentTool()` and `runAgentTool()`: a run that would be deeper
   * ends with an error that says by which way. `Infinity`: no bound.
   */
  maxAgentToolDepth = DEFAULT_MAX_DEPTH;
  /**
   * How many runs may come of one turn of this agent: those that it asks for, those that their children ask for, and so on,
   * detached ones and what is said about their ends too. More end with an error. `Infinity`: no bound.
   */
  maxAgentToolRuns = DEFAULT_MAX_RUNS;
  /** A detached run is given up and stopped after this many milliseconds. 0: never. */
  detachedMaxBudgetMs = DEFAULT_MAX_BUDGET_MS;
  /** A detached run that has reported progress is given up when it reports none for this long. 0: never. */
  detachedNoProgressBudgetMs = DEFAULT_NO_PROGRESS_MS;

  /**
   * Has a child of this class, made for it, do a piece of work, and resolves with what came of it, however it ended.
   * The run goes on through crashes of either side; the same `runId` again joins it. `detached` does not wait. The
   * child stays, with its conversation, at the address `runId` until {@link Agent.clearAgentToolRuns}.
   * @throws PerdureError `unknown_agent`, `bad_config` for a class without a conversation, `bad_input`, `conflict`
   */
  runAgentTool(cls: HostedAgentClass, options: DetachedRunAgentToolOptions<this>): Promise<DetachedRunAgentToolResult>;
  runAgentTool<Output = unknown>(
    cls: HostedAgentClass,
    options: RunAgentToolOptions<unknown, this>,
  ): Promise<RunAgentToolResult<Output>>;
  async runAgentTool<Output = unknown>(
    cls: HostedAgentClass,
    options: RunAgentToolOptions<unknown, this>,
  ): Promise<RunAgentToolResult<Output> | DetachedRunAgentToolResult> {
    refuseUnknown(options, runNames, "runAgentTool()");
    refuseUnknown(options.detached, detachedNames, "runAgentTool(): detached");
    return this.#runs.run<Output>(cls, options as RunAgentToolOptions);
  }

  /** Stops a run for good, and with it everything below it. One that has ended stays as it is. */
  cancelAgentTool(runId: string, reason?: string): Promise<void> {
    return this.#runs.cancel(runId, reason);
  }

  hasAgentToolRun(cls: ChildClass, runId: string): boolean {
    return this.#runs.has(cls, runId);
  }

  /** The runs that are kept, oldest first. */
  listAgentToolRuns(): AgentToolRunInfo[] {
    return this.#runs.list();
  }

  /** Forgets runs and deletes their children: all, or those of a status, or begun before a time. Open ones are stopped. */
  clearAgentToolRuns(options?: { olderThan?: number; status?: readonly AgentToolRunStatus[] }): Promise<void> {
    return this.#runs.clear(options);
  }

  /** A run was accepted. Only watches: what it throws goes to {@link Agent.onError}. */
  onAgentToolStart(_run: AgentToolRunInfo): void | Promise<void> {}
  /** A run has ended. Only watches, like {@link Agent.onAgentToolStart}; for a detached run called again after a crash. */
  onAgentToolFinish(_run: AgentToolRunInfo, _result: AgentToolLifecycleResult): void | Promise<void> {}
  /** A child reported progress. Only watches. */
  onProgress(_run: AgentToolRunInfo, _progress: AgentToolProgressSnapshot): void | Promise<void> {}

  /** Whether a run is still to be done. Its child asks this before it calls a model. */
  wantsAgentToolRun(runId: string): Promise<boolean> {
    return this.#runs.wants(runId);
  }

  /** Counts one more run of those that came of a turn of this agent. Agents below call this. */
  countAgentToolRun(of: Pick<Lineage, "key" | "at">): Counted {
    return countRun(this[parts].host, this, of);
  }

  /** Books a model call of a run that this agent asked for, here and with the agents above. Its child calls this. */
  bookAgentToolCall(runId: string, note: CallNote): Promise<Booked> {
    return bookCall({ host: this[parts].host, keeper: this[turnKeeper] }, runId, note);
  }

  /** Tells this agent how a detached run ended. Called from the queue. */
  deliverAgentToolRun(payload: unknown): void | Promise<void> {
    return this.#runs.deliver(payload);
  }

  /** @internal */
  get [turnKeeper](): TurnKeeper | undefined {
    return undefined;
  }

  /** @internal */
  [turnOver](turnId: string): void {
    this.#runs.turnEnded(turnId);
  }

  /** Deletes this agent, its children, everything stored, and closes its connections. It may be made anew by its name. */
  destroy(): Promise<void> {
    const { host } = this[parts];
    return host.remove(host.path);
  }
}
