import type { Identity } from "../base/identity.ts";
import { refuseUnknown } from "../base/known-options.ts";
import { findOwnersBy } from "../base/owner.ts";
import { hostable, hosted } from "../port.ts";
import type { AgentEnv, AgentHost, AgentPath, AgentStep, HostedAgent, HostedAgentClass, SqlRow } from "../port.ts";
import type { ChildRow } from "../store/child.ts";
import type { AgentStub } from "../stub.ts";
import type { McpClientManager } from "../toolbox/mcp/client/manager.ts";
import type { AddMcpServerOptions, AddMcpServerResult } from "../toolbox/mcp/client/types.ts";
import type { McpOAuthProvider } from "../toolbox/mcp/oauth/own-provider.ts";
import type { Verdict } from "../wire/fetch-object.ts";
import type { McpState } from "../wire/frames.ts";
import type { JsonObject } from "../wire/json.ts";
import type { AppliedRowChange, RowWrite } from "../wire/row-frames.ts";
import type * as options from "../work/fibers.ts";
import type * as fibers from "../work/fiber-view.ts";
import type { QueueItem, QueueOptions } from "../work/queue.ts";
import { retry, type RetryCallOptions } from "../work/retry.ts";
import type { Schedule, ScheduleCriteria, ScheduleOptions } from "../work/schedules.ts";
import type { Act, ActTarget } from "../door/authorize.ts";
import { listCallables, type CallableOptions } from "./callable.ts";
import type { AgentCollection } from "../parts/rows/collection.ts";
import type { RowOutcome, RowSource } from "../parts/rows/rows.ts";
import type { Collections } from "../parts/rows/rules.ts";
import type { Connection, ConnectionContext, WSMessage } from "../door/connection.ts";
import { parts } from "../parts/part.ts";
import { Hosting } from "./hosting.ts";
import { ownerNow } from "../parts/current.ts";
import { type AgentOptions, AgentParts } from "../parts/agent-parts.ts";
import { bookCall, type Booked, type CallNote } from "../parts/runs/book-calls.ts";
import { type Counted, countRun, type Lineage } from "../parts/runs/lineage.ts";
import type * as runs from "../parts/runs/types.ts";
import { detachedNames, runNames } from "../parts/runs/types.ts";
import type { StateSource } from "../parts/state.ts";
import type { ChildClass } from "../parts/children.ts";
import { type SqlParameter, userSql } from "./user-sql.ts";

type Maybe<T> = T | Promise<T>;

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
export class Agent<Env extends object = AgentEnv, State = unknown, Props extends object = object> {
  /** Settings of the class. */
  static readonly options: AgentOptions = {};
  /**
   * Classes, or their registered names, whose agents clients may reach as children of this one, and create. Other children can be
   * reached from outside only once the agent itself has made them.
   */
  static readonly subAgents: readonly ChildClass[] = [];

  /** @internal */
  static readonly [hostable] = true;
  /** @internal */
  readonly [parts]: AgentParts<State>;
  /** @internal */
  readonly [hosted]: HostedAgent;

  constructor(host: AgentHost) {
    findOwnersBy(ownerNow);
    this[parts] = new AgentParts<State>(this, host);
    this[hosted] = new Hosting(this, Agent.prototype);
  }

  /** The instance's name. */
  get name(): string {
    return (this.selfPath.at(-1) ?? this.selfPath[0]).name;
  }

  /** The whole address, root first. */
  get selfPath(): AgentPath {
    return this[parts].host.path;
  }

  /** The address above this one, root first; empty for an agent that is not a child. */
  get parentPath(): readonly AgentPath[number][] {
    return this.selfPath.slice(0, -1);
  }

  /** What the host was given as `env`; by default the environment of its process. The same object for all of its agents. */
  get env(): Env {
    return this[parts].host.env as Env;
  }

  // State

  /** The state before any was set. Leave it out for an agent without state. */
  initialState: State | undefined = undefined;

  /** The current state: what was set last, else {@link Agent.initialState}. Replace it, do not change it in place. */
  get state(): State {
    return this[parts].state.value as State;
  }

  /**
   * Stores a new state and sends it to every connection; committed when it returns, unchanged if it throws.
   * @throws PerdureError `read_only`, `bad_input` for what JSON would lose, what {@link Agent.validateStateChange} throws
   */
  setState(state: State): void {
    this[parts].state.set(state, "server");
  }

  /** Throw here to refuse a change; a client is told only that. Must be synchronous: a promise refuses everything. */
  validateStateChange(_next: State, _source: StateSource): void {}

  /** After a change was stored and sent. What it throws goes to {@link Agent.onError}. */
  onStateChanged(_state: State, _source: StateSource): void | Promise<void> {}

  // Storage

  /**
   * Runs SQL on this agent's own database: ``this.sql`SELECT * FROM note WHERE id = ${id}` ``. Synchronous.
   * @throws PerdureError `sql_failed`, `sql_refused`, `bad_input`
   */
  sql<T = SqlRow>(strings: TemplateStringsArray, ...values: SqlParameter[]): T[] {
    return userSql<T>(this[parts].host, strings, values);
  }

  /** Runs synchronous work in one transaction: all of its SQL, state changes and sends happen, or none. */
  transaction<T>(work: () => T): T {
    return this[parts].host.tx(work);
  }

  // Connections

  /** All open connections, or those with a tag. */
  getConnections<S = unknown>(tag?: string): Generator<Connection<S>> {
    return this[parts].open(tag) as Generator<Connection<S>>;
  }

  /** The newest open connection with this id. Clients choose their ids: of several people, the first to come has it. */
  getConnection<S = unknown>(id: string): Connection<S> | undefined {
    return this[parts].connection(id) as Connection<S> | undefined;
  }

  /** Sends to every connection but those whose ids are listed. */
  broadcast(message: string | Uint8Array, without: readonly string[] = []): void {
    for (const connection of this.getConnections()) if (!without.includes(connection.id)) connection.send(message);
  }

  /** Tags for a new connection, to find it by. Throwing refuses the connection. */
  getConnectionTags(_connection: Connection, _context: ConnectionContext): Maybe<readonly string[]> {
    return [];
  }

  // Who may do what

  /**
   * Whether somebody outside may do this: the app's one place for it, asked for every frame and request, after the framework's
   * rules and before anything is done; not for server code. Only `true` allows it: anything else, and a throw, refuses, and the
   * client is told. May be slow; frames of one connection stay in order. Default: yes.
   * @param identity who it is, as the app established it
   * @param on what it is about, as far as known: the session, the method, the call, …
   */
  authorize(_identity: Identity | undefined, _act: Act, _on: ActTarget): boolean | Promise<boolean> {
    return true;
  }

  /**
   * Whether somebody may only read. Asked for each new connection and request. Writes are refused with `read_only`, also inside
   * methods that they call. Must answer at once. Default: no.
   */
  mayOnlyRead(_identity: Identity | undefined): boolean {
    return false;
  }

  /**
   * Whether a new connection may only read, as {@link Agent.mayOnlyRead} for an identity. Asked before it is sent anything. Must
   * answer at once: anything but true and false counts as true, and the app is told.
   */
  shouldConnectionBeReadonly(_connection: Connection, _context: ConnectionContext): boolean {
    return false;
  }

  /** Whether a new connection gets identity, state and MCP frames. Must answer at once. */
  shouldSendProtocolMessages(_connection: Connection, _context: ConnectionContext): boolean {
    return true;
  }

  /** Lets a connection only read, or write again. */
  setConnectionReadonly(connection: Connection, readonly = true): void {
    connection.isReadonly = readonly;
  }
  isConnectionReadonly(connection: Connection): boolean {
    return connection.isReadonly;
  }
  isConnectionProtocolEnabled(connection: Connection): boolean {
    return !connection.isQuiet;
  }

  // Hooks

  /**
   * Once per stay in memory, before anything else, so it must be fine to do again. What it throws goes to {@link Agent.onError}
   * and fails what was waiting; the next use tries again.
   */
  onStart(_props?: Props): void | Promise<void> {}

  /** Answers HTTP requests to this agent. What it throws is answered with 500 and goes to {@link Agent.onError}. */
  onRequest(_request: Request): Response | Promise<Response> {
    return new Response("Not implemented", { status: 404 });
  }

  /** A client has connected. Its frames wait until this settles; throwing closes it with 1011. */
  onConnect(_connection: Connection, _context: ConnectionContext): void | Promise<void> {}

  /** A frame that is none of the framework's. What it throws goes to {@link Agent.onError}. */
  onMessage(_connection: Connection, _message: WSMessage): void | Promise<void> {}

  onClose(_connection: Connection, _code: number, _reason: string, _wasClean: boolean): void | Promise<void> {}

  /** Something of this agent threw, and is in the host's log. Called by your own code, it writes there. Must not throw. */
  onError(error: unknown, _connection?: Connection): void | Promise<void> {
    const { host, telling } = this[parts];
    if (!telling) host.report(error, { stage: "onError" });
  }

  /** The methods that clients may call, with what was said of them. */
  getCallableMethods(): Map<string, CallableOptions> {
    return listCallables(this);
  }

  // Schedules

  /**
   * Calls a method with the payload and the run later: after seconds, at a date, or by a cron expression (UTC unless `timeZone`).
   * Resolves once the schedule survives. A cron schedule with the same method, expression and payload is not added twice; others
   * only with `idempotent: true`. @throws PerdureError `bad_input`, `bad_config`, `not_found`
   */
  schedule<T = unknown>(
    when: number | Date | string,
    callback: keyof this & string,
    payload?: T,
    options?: ScheduleOptions,
  ): Promise<Schedule<T>> {
    return this[parts].schedules.schedule(when, callback, payload, options);
  }

  /** Calls a method every `seconds`, first after one interval. Safe to repeat, as in `onStart`. */
  scheduleEvery<T = unknown>(
    seconds: number,
    callback: keyof this & string,
    payload?: T,
    options?: Omit<ScheduleOptions, "timeZone">,
  ): Promise<Schedule<T>> {
    return this[parts].schedules.scheduleEvery(seconds, callback, payload, options);
  }
  getScheduleById(id: string): Schedule | undefined {
    return this[parts].schedules.getScheduleById(id);
  }

  /** Schedules that match, in the order of their next run. */
  listSchedules(criteria?: ScheduleCriteria): Schedule[] {
    return this[parts].schedules.listSchedules(criteria);
  }

  /** The same as {@link Agent.getScheduleById}. */
  getSchedule(id: string): Schedule | undefined {
    return this.getScheduleById(id);
  }

  /** The same as {@link Agent.listSchedules}. */
  getSchedules(criteria?: ScheduleCriteria): Schedule[] {
    return this.listSchedules(criteria);
  }

  /** Removes a schedule; a run under way finishes. False when there is none. */
  cancelSchedule(id: string): Promise<boolean> {
    return this[parts].schedules.cancelSchedule(id);
  }

  // Queue

  /** Calls a method in the background, one call after the other. Resolves with an id once it survives. */
  queue<T = unknown>(callback: keyof this & string, payload?: T, options?: QueueOptions): Promise<string> {
    return this[parts].queue.queue(callback, payload, options);
  }

  /** Takes a call back, unless it is running. False when there is none. */
  dequeue(id: string): Promise<boolean> {
    return this[parts].queue.dequeue(id);
  }
  dequeueAll(): Promise<number> {
    return this[parts].queue.dequeueAll();
  }
  dequeueAllByCallback(callback: string): Promise<number> {
    return this[parts].queue.dequeueAllByCallback(callback);
  }
  getQueue<T = unknown>(id: string): QueueItem<T> | undefined {
    return this[parts].queue.getQueue<T>(id);
  }

  /** Queued calls whose payload has `key` equal to `value`. */
  getQueues<T = unknown>(key: string, value: string): QueueItem<T>[] {
    return this[parts].queue.getQueues<T>(key, value);
  }

  /** Calls `work` again when it fails, with growing waits. Not stored: for that, use the queue or a fiber. */
  retry<T>(work: (attempt: number) => T | Promise<T>, options?: RetryCallOptions): Promise<T> {
    return retry(this[parts].host.clock, work, options, this[parts].retry);
  }

  // Staying in memory

  /** Keeps the agent in memory until the returned function is called. */
  keepAlive(): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    void this[parts].host.keepAwake(promise);
    return Promise.resolve(() => resolve());
  }

  /** Keeps the agent in memory while `work` runs. */
  keepAliveWhile<T>(work: () => Promise<T>): Promise<T> {
    return this[parts].host.keepAwake(work());
  }

  // Fibers

  /**
   * Runs a function that leaves a note until it returns or throws: if the process dies first, {@link Agent.onFiberRecovered} is
   * called in the next life with the last checkpoint.
   */
  runFiber<T>(name: string, work: (fiber: fibers.FiberContext) => T | Promise<T>): Promise<T> {
    return this[parts].fibers.runFiber(name, work);
  }

  /**
   * Starts a method as a fiber: after a crash or a throw it is called again with its payload and the last checkpoint, until it is
   * done or out of tries. Returns its id.
   */
  spawnFiber(method: keyof this & string, payload?: unknown, options?: options.SpawnFiberOptions): string {
    return this[parts].fibers.spawnFiber(method, payload, options);
  }

  /** Like {@link Agent.runFiber}, kept in a ledger: accepted once per key, to be inspected and cancelled. */
  startFiber(
    name: string,
    work: (fiber: fibers.FiberContext) => unknown,
    options?: options.StartFiberOptions,
  ): Promise<fibers.StartFiberResult> {
    return this[parts].startFiber(name, work, options);
  }

  /** Replaces the checkpoint of the fiber that this runs in. @throws PerdureError `bad_state` outside one. */
  stash(data: unknown): void {
    this[parts].fibers.stash(data);
  }

  /** The same as {@link Agent.stash}. */
  stashFiber(data: unknown): void {
    this[parts].fibers.stash(data);
  }
  inspectFiber(fiberId: string): fibers.FiberInspection | null {
    return this[parts].fibers.inspectFiber(fiberId);
  }
  inspectFiberByKey(idempotencyKey: string): fibers.FiberInspection | null {
    return this[parts].fibers.inspectFiberByKey(idempotencyKey);
  }
  listFibers(options?: options.ListFibersOptions): fibers.FiberInspection[] {
    return this[parts].fibers.listFibers(options);
  }

  /** Cancels for good: stored first, then the fiber's signal aborts. False when it had ended. */
  cancelFiber(fiberId: string, reason?: string): Promise<boolean> {
    return this[parts].fibers.cancelFiber(fiberId, reason);
  }
  cancelFiberByKey(idempotencyKey: string, reason?: string): Promise<boolean> {
    return this[parts].fibers.cancelFiberByKey(idempotencyKey, reason);
  }

  /** Decides how an interrupted fiber ends. False when it is not interrupted. */
  resolveFiber(fiberId: string, result: fibers.FiberRecoveryResult): Promise<boolean> {
    return this[parts].fibers.resolveFiber(fiberId, result);
  }

  /** Deletes settled fibers. @returns how many */
  deleteFibers(options?: options.DeleteFibersOptions): Promise<number> {
    return this[parts].fibers.deleteFibers(options);
  }

  /**
   * A fiber's function died with its process. Carry on from `snapshot` and say how it ended; if you return nothing it stays
   * interrupted. After a throw it is called again, less and less often.
   */
  onFiberRecovered(_fiber: fibers.FiberRecoveryContext): Maybe<void | fibers.FiberRecoveryResult> {}

  // Children

  /**
   * A child of this agent, with its own database, connections, timers and children; made on first use.
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

  /** The parent of this agent. @throws PerdureError `bad_state` when there is none, or it is of another class. */
  parentAgent<C extends HostedAgentClass>(cls: C): AgentStub<InstanceType<C>> {
    return this[parts].children.parent(cls);
  }

  /**
   * Before a request or socket from outside reaches a child: return a Response to refuse, a Request to replace it, `{ identity }`
   * to say who it is for the child and all below, nothing to let it pass. `getCurrentAgent().identity` is who it is so far. Not
   * asked for frames. A throw answers 500 (or a close that lets the client try again) and goes to {@link Agent.onError}.
   */
  onBeforeSubAgent(_request: Request, _child: AgentStep): Verdict | Promise<Verdict> {}

  // Collections

  /** Collections that clients of `perdure/collections` may use; `"*"`: all others. Asked once per life. Default: none. */
  getCollections(): Collections {
    return {};
  }

  /** One of the collections, to be read and written here. @throws PerdureError `not_found` when it is not declared. */
  collection<TRow extends object = JsonObject>(name: string): AgentCollection<TRow> {
    return this[parts].rows.open<TRow>(name);
  }

  /**
   * Writes rows of several collections and tells clients: all, or none if a condition does not hold. Synchronous.
   * @throws PerdureError `not_found`, `bad_input`, `too_large`, `limit`, `read_only`, `fenced`. Nothing has changed then.
   */
  writeRows(write: RowWrite): RowOutcome {
    return this[parts].rows.write(write);
  }

  /** Rows have changed, and that is committed. Only watches: what it throws goes to {@link Agent.onError}. */
  onCollectionChange(_changes: readonly AppliedRowChange[], _source: RowSource): void | Promise<void> {}

  // MCP servers

  /** The agent's MCP servers: their tools, prompts and resources. They are stored, and connected in each life. */
  get mcp(): McpClientManager {
    return this[parts].mcp.manager;
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
  /** How deep `agentTool()` and `runAgentTool()` may nest agents; a deeper run ends with an error. `Infinity`: no bound. */
  maxAgentToolDepth = DEFAULT_MAX_DEPTH;
  /**
   * How many runs may come of one turn of this agent, with their children's, detached ones, and what is said about their ends.
   * More end with an error. `Infinity`: no bound.
   */
  maxAgentToolRuns = DEFAULT_MAX_RUNS;
  /** A detached run is given up and stopped after this many milliseconds. 0: never. */
  detachedMaxBudgetMs = DEFAULT_MAX_BUDGET_MS;
  /** A detached run that has reported progress is given up when it reports none for this long. 0: never. */
  detachedNoProgressBudgetMs = DEFAULT_NO_PROGRESS_MS;

  /**
   * Has a child of this class, made for it, do a piece of work; resolves with the result, however it ended. Survives crashes of
   * either side; the same `runId` joins it. `detached` does not wait. The child stays, at the address `runId`, until {@link
   * Agent.clearAgentToolRuns}.
   * @throws PerdureError `unknown_agent`, `bad_config` for a class without a conversation, `bad_input`, `conflict`
   */
  runAgentTool(
    cls: HostedAgentClass,
    options: runs.DetachedRunAgentToolOptions<this>,
  ): Promise<runs.DetachedRunAgentToolResult>;
  runAgentTool<Output = unknown>(
    cls: HostedAgentClass,
    options: runs.RunAgentToolOptions<unknown, this>,
  ): Promise<runs.RunAgentToolResult<Output>>;
  async runAgentTool<Output = unknown>(
    cls: HostedAgentClass,
    options: runs.RunAgentToolOptions<unknown, this>,
  ): Promise<runs.RunAgentToolResult<Output> | runs.DetachedRunAgentToolResult> {
    refuseUnknown(options, runNames, "runAgentTool()");
    refuseUnknown(options.detached, detachedNames, "runAgentTool(): detached");
    return this[parts].runs.run<Output>(cls, options as runs.RunAgentToolOptions);
  }

  /** Stops a run for good, and with it everything below it. One that has ended stays as it is. */
  cancelAgentTool(runId: string, reason?: string): Promise<void> {
    return this[parts].runs.cancel(runId, reason);
  }
  hasAgentToolRun(cls: ChildClass, runId: string): boolean {
    return this[parts].runs.has(cls, runId);
  }

  /** The runs that are kept, oldest first. */
  listAgentToolRuns(): runs.AgentToolRunInfo[] {
    return this[parts].runs.list();
  }

  /** Forgets runs and deletes their children: all, or those of a status, or begun before a time. Open ones are stopped. */
  clearAgentToolRuns(options?: { olderThan?: number; status?: readonly runs.AgentToolRunStatus[] }): Promise<void> {
    return this[parts].runs.clear(options);
  }

  /** A run was accepted. Only watches: what it throws goes to {@link Agent.onError}. */
  onAgentToolStart(_run: runs.AgentToolRunInfo): void | Promise<void> {}
  /** A run has ended. Only watches, like {@link Agent.onAgentToolStart}; for a detached run called again after a crash. */
  onAgentToolFinish(_run: runs.AgentToolRunInfo, _result: runs.AgentToolLifecycleResult): void | Promise<void> {}
  /** A child reported progress. Only watches. */
  onProgress(_run: runs.AgentToolRunInfo, _progress: runs.AgentToolProgressSnapshot): void | Promise<void> {}

  /** Whether a run is still to be done. Its child asks this before it calls a model. */
  wantsAgentToolRun(runId: string): Promise<boolean> {
    return this[parts].runs.wants(runId);
  }

  /** Counts one more run of those that came of a turn of this agent. Agents below call this. */
  countAgentToolRun(of: Pick<Lineage, "key" | "at">): Counted {
    return countRun(this[parts].host, this, of);
  }

  /** Books a model call of a run that this agent asked for, here and with the agents above. Its child calls this. */
  bookAgentToolCall(runId: string, note: CallNote): Promise<Booked> {
    return bookCall(this[parts], runId, note);
  }

  /** Tells this agent how a detached run ended. Called from the queue. */
  deliverAgentToolRun(payload: unknown): void | Promise<void> {
    return this[parts].runs.deliver(payload);
  }

  /** Deletes this agent, its children, everything stored, and closes its connections. It may be made anew by its name. */
  destroy(): Promise<void> {
    const { host } = this[parts];
    return host.remove(host.path);
  }
}
