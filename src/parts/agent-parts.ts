import { errorText, PerdureError } from "../base/error.ts";
import { Fibers } from "../work/fibers.ts";
import { Queue } from "../work/queue.ts";
import { DEFAULT_RETRY, resolveRetry, type RetryOptions } from "../work/retry.ts";
import { Schedules } from "../work/schedules.ts";
import type { Work, WorkContext } from "../work/work.ts";
import type { AboutFailure, AgentHost, AgentStep } from "../port.ts";
import { type Connection, Connections } from "../door/connection.ts";
import { causeNow, readCause } from "./cause.ts";
import { carryWith, causeCarried, type Current, currentAgent, runAs, runOutsideTurn, withCause } from "./current.ts";
import type { Caller } from "../door/authorize.ts";
import type { AgentPart, OwnAgent, parts, WaitingTurn } from "./part.ts";
import { AgentMcp, type McpHooks } from "./mcp.ts";
import { RowsPart, type CollectionHooks } from "./rows/part.ts";
import { AgentRuns } from "./runs/agent-runs.ts";
import type { OwnTurns } from "./runs/own-turns.ts";
import type { RunPolicy } from "./runs/run-policy.ts";
import type { FiberContext, StartFiberResult } from "../work/fiber-view.ts";
import type { StartFiberOptions } from "../work/fibers.ts";
import { StoredState, type StateOwner, type StateSource } from "./state.ts";
import { type ChildClass, SubAgents } from "./children.ts";

/** Settings of an agent class: `static override options = { … }`. */
export interface AgentOptions {
  /** Whether clients are told which agent they reached. Default true. */
  readonly sendIdentityOnConnect?: boolean;
  /** Whether clients may set the state. Default false: they call methods instead. */
  readonly allowClientState?: boolean;
  /** Defaults for the retries of schedules, queue and `retry()`. */
  readonly retry?: RetryOptions;
  /** How long a fiber's recovery is tried before it is left as interrupted; 0: for ever. Default 24 h. */
  readonly fiberRecoveryMaxAgeMs?: number;
}

/** What the parts of an agent ask of its class. */
interface AgentPolicy<State> extends RunPolicy, McpHooks, CollectionHooks {
  readonly [parts]: AgentParts<State>;
  readonly initialState: State | undefined;
  validateStateChange(next: State, source: StateSource): void;
  onStateChanged(state: State, source: StateSource): void | Promise<void>;
  onError(error: unknown, connection?: Connection): void | Promise<void>;
}

/** What is static in a class. */
interface AgentStatics {
  readonly options: AgentOptions;
  readonly subAgents: readonly ChildClass[];
}

/** What an agent is wired from. Parts are made on first use: there may be many thousands of agents that use few of them. */
export class AgentParts<State> implements OwnAgent, WorkContext, StateOwner<State> {
  readonly host: AgentHost;
  /** In the order in which they are asked. */
  readonly parts: AgentPart[] = [];
  readonly waiting = new Map<string, readonly WaitingTurn[]>();
  readonly state: StoredState<State>;
  readonly runs: AgentRuns;
  readonly mcp: AgentMcp;
  readonly rows: RowsPart;
  turns: OwnTurns | undefined;
  readonly #agent: AgentPolicy<State>;
  #connections: Connections | undefined;
  #children: SubAgents | undefined;
  #schedules: Schedules | undefined;
  #queue: Queue | undefined;
  #fibers: Fibers | undefined;
  #retry: Required<RetryOptions> | undefined;
  /** `onError` is being told of what is in the log already. */
  telling = false;
  /** No new work: the host is going away. */
  draining = false;
  halted = false;

  /** Fields of subclasses are not set yet when this runs. */
  constructor(agent: AgentPolicy<State>, host: AgentHost) {
    carryWith(host.context);
    this.host = host;
    this.#agent = agent;
    this.state = new StoredState(host, this);
    this.runs = new AgentRuns(this, agent);
    this.mcp = new AgentMcp(this, agent);
    this.rows = new RowsPart(this, agent);
    this.parts.push(this.runs, this.mcp, this.rows);
  }

  get #statics(): AgentStatics {
    return this.#agent.constructor as unknown as AgentStatics;
  }

  get options(): AgentOptions {
    return this.#statics.options;
  }

  get connections(): Connections {
    return (this.#connections ??= new Connections());
  }

  /** Those that are open, or those of them with a tag. */
  *open(tag?: string): Generator<Connection> {
    for (const socket of this.host.sockets.all(tag)) yield this.connections.of(socket);
  }

  /** The newest one of an id. It belongs to whom the oldest one belongs to; another person's are passed over. */
  connection(id: string): Connection | undefined {
    let found: Connection | undefined;
    for (const connection of this.open()) {
      if (connection.id !== id) continue;
      if (found === undefined || found.identity?.id === connection.identity?.id) found = connection;
    }
    return found;
  }

  get children(): SubAgents {
    return (this.#children ??= new SubAgents(this.host));
  }

  /** What clients are answered who want to reach a child that they may not reach; undefined when they may. */
  refuseChild(child: AgentStep): Response | undefined {
    return this.children.refuse(child, this.#statics.subAgents);
  }

  sessionOf(caller: Caller): string | undefined {
    for (const part of this.parts) {
      const session = part.sessionOf?.(caller);
      if (session !== undefined) return session;
    }
    return undefined;
  }

  get schedules(): Schedules {
    return (this.#schedules ??= new Schedules(this));
  }

  get queue(): Queue {
    return (this.#queue ??= new Queue(this));
  }

  get fibers(): Fibers {
    return (this.#fibers ??= new Fibers(this, { recoveryMaxAgeMs: this.options.fiberRecoveryMaxAgeMs }));
  }

  startFiber(
    name: string,
    work: (fiber: FiberContext) => unknown,
    options?: StartFiberOptions,
  ): Promise<StartFiberResult> {
    const { host, fibers } = this;
    // Who waits for it stays in its turn, and a turn that it ran would wait for that one.
    const of = causeNow(host);
    const isWaitedFor = options?.waitForCompletion === true;
    const run = (fiber: FiberContext) => runOutsideTurn(host.context, of, () => work(fiber));
    return fibers.startFiber(name, isWaitedFor ? work : run, options);
  }

  /** A turn needs nothing any more, but for calls of it that go on. */
  turnOver(turnId: string): void {
    if (this.turns?.goesOn(turnId) !== true) this.runs.turnEnded(turnId);
  }

  /** Resolves with it once all that is written is durable. */
  async stored<T>(value: T): Promise<T> {
    await this.host.durable();
    return value;
  }

  /** As what its code runs that nobody outside has asked for. */
  get nobody(): Current {
    return { agent: this.#agent, connection: undefined, request: undefined };
  }

  /** Everything with a due time; all share the agent's one alarm. */
  *works(): Generator<Work> {
    yield this.schedules;
    yield this.queue;
    yield this.fibers;
    for (const part of this.parts) if (part.work !== undefined) yield part.work;
  }

  /** Recomputes the alarm. Also while draining: the time of what is left for the next start comes from here. */
  rearm(): void {
    if (this.halted) return;
    let next: number | null = null;
    for (const work of this.host.blank ? [] : this.works()) {
      const at = work.next();
      if (at !== null && (next === null || at < next)) next = at;
    }
    this.host.alarm(next);
  }

  halt(reason: unknown): void {
    this.draining = true;
    this.halted = true;
    for (const work of [this.#schedules, this.#queue, this.#fibers]) work?.halt(reason);
    for (const part of this.parts) part.halt?.(reason);
  }

  // What work asks of its agent.

  get retry(): Required<RetryOptions> {
    return (this.#retry ??= resolveRetry(this.options.retry, DEFAULT_RETRY));
  }

  /** The method as scheduled work calls it: as this agent, in no turn and for no connection, whoever asked for it. */
  method(name: string): ((...args: unknown[]) => unknown) | undefined {
    const agent = this.#agent;
    const method: unknown = name in Object.prototype ? undefined : Reflect.get(agent, name);
    if (typeof method !== "function") return undefined;
    return (...args) => {
      const { fiber } = currentAgent();
      const current = { ...this.nobody, ...(fiber !== undefined && { fiber }), ...withCause(causeCarried()) };
      return runAs(this.host.context, current, () => Reflect.apply(method, agent, args) as unknown);
    };
  }

  cause(): string | null {
    const cause = causeNow(this.host);
    return cause === undefined ? null : JSON.stringify(cause);
  }

  carry(cause: string | null): object {
    return withCause(readCause(cause));
  }

  stopped(): boolean {
    return this.draining;
  }

  changed(): void {
    this.rearm();
  }

  // What the state asks of its agent.

  initialState(): State | undefined {
    return this.#agent.initialState;
  }

  validate(next: State, source: StateSource): void {
    const verdict: unknown = this.#agent.validateStateChange(next, source);
    if (!(verdict instanceof Promise)) return;
    // It may reject, which nobody waits for.
    verdict.catch(() => undefined);
    throw new PerdureError(
      "bad_config",
      "validateStateChange() returned a promise, which is too late to refuse a change. Make it synchronous.",
    );
  }

  /** Best effort: the change stands whatever becomes of this. */
  stateChanged(state: State, source: StateSource): void {
    void (async () => this.#agent.onStateChanged(state, source))().catch((error: unknown) =>
      this.failed(error, { stage: "onStateChanged" }),
    );
  }

  async failed(error: unknown, about: AboutFailure, connection?: Connection): Promise<void> {
    this.host.report(error, about);
    try {
      await this.#tell(error, connection);
    } catch (thrown) {
      this.host.emit("agent:failed", { stage: "onError", error: errorText(thrown) });
      this.host.report(thrown, { ...about, stage: "onError" });
    }
  }

  #tell(error: unknown, connection: Connection | undefined): void | Promise<void> {
    this.telling = true;
    try {
      return this.#agent.onError(error, connection);
    } finally {
      this.telling = false;
    }
  }

  *readers(): Generator<Connection> {
    for (const connection of this.open()) if (!connection.isQuiet) yield connection;
  }
}
