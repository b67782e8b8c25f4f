import type { Identity } from "../base/identity.ts";
import type { AgentEnv, AgentHost, AgentPath, SqlRow } from "../port.ts";
import type { RetryOptions } from "../work/retry.ts";
import type { Act, ActTarget } from "./authorize.ts";
import { listCallables, type CallableOptions } from "./callable.ts";
import type { Connection } from "./connection.ts";
import { AgentParts, parts } from "./parts.ts";
import type { StateSource } from "./state.ts";
import type { ChildClass } from "./sub-agents.ts";
import { type SqlParameter, userSql } from "./user-sql.ts";

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

/** What comes in on a socket. */
export type WSMessage = string | Uint8Array;

/** What comes with a new connection. */
export interface ConnectionContext {
  /** The upgrade request: headers, cookies, query. */
  readonly request: Request;
}

/** Identity, state, SQL, connections and the hooks of an agent. See {@link Agent}. */
export class AgentBase<Env extends object = AgentEnv, State = unknown, Props extends object = object> {
  /** Settings of the class. */
  static readonly options: AgentOptions = {};
  /**
   * Classes, or the names that they are registered under, whose agents clients may reach as children of an agent of this
   * class, new ones too. Other children are reached from outside only when the agent itself has made them.
   */
  static readonly subAgents: readonly ChildClass[] = [];

  /** @internal */
  readonly [parts]: AgentParts<State>;

  constructor(host: AgentHost) {
    this[parts] = new AgentParts<State>(this, host);
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

  /** The current state: what was set last, else {@link AgentBase.initialState}. Replace it, do not change it in place. */
  get state(): State {
    return this[parts].state.value as State;
  }

  /**
   * Stores a new state and sends it to every connection; when it returns, it is committed.
   * @throws PerdureError `read_only` inside a call from who may only read, `bad_input` when JSON cannot
   *   hold it, or would lose some of it; what {@link AgentBase.validateStateChange} throws. Nothing has changed then.
   */
  setState(state: State): void {
    this[parts].state.set(state, "server");
  }

  /**
   * Throw here to refuse a change; a client is told only that it was refused. Must be synchronous: one that returns a
   * promise refuses everything.
   */
  validateStateChange(_next: State, _source: StateSource): void {}

  /** After a change was stored and sent. What it throws goes to {@link AgentBase.onError}. */
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
  *getConnections<S = unknown>(tag?: string): Generator<Connection<S>> {
    const { host, connections } = this[parts];
    for (const socket of host.sockets.all(tag)) yield connections.of(socket) as Connection<S>;
  }

  /**
   * The newest open connection with this id. Clients choose their ids: it belongs to whom the oldest connection with it
   * belongs to, and another person's are passed over.
   */
  getConnection<S = unknown>(id: string): Connection<S> | undefined {
    let found: Connection<S> | undefined;
    for (const connection of this.getConnections<S>()) {
      if (connection.id !== id) continue;
      if (found === undefined || found.identity?.id === connection.identity?.id) found = connection;
    }
    return found;
  }

  /** Sends to every connection but those whose ids are listed. */
  broadcast(message: string | Uint8Array, without: readonly string[] = []): void {
    for (const connection of this.getConnections()) if (!without.includes(connection.id)) connection.send(message);
  }

  /** Tags for a new connection, to find it by. Throwing refuses the connection. */
  getConnectionTags(
    _connection: Connection,
    _context: ConnectionContext,
  ): readonly string[] | Promise<readonly string[]> {
    return [];
  }

  // Who may do what

  /**
   * Whether somebody outside may do this: the app's one place for it, asked for every frame and request, after the rules
   * of the framework and before anything is done. Only `true` allows it: anything else, and a throw, refuses, and the
   * client is told. May be slow; frames of one connection stay in order. Not asked for server code. Default: yes.
   * @param identity who it is, as the app established it
   * @param on what it is about, as far as that is known: the session, the method, the call, …
   */
  authorize(_identity: Identity | undefined, _act: Act, _on: ActTarget): boolean | Promise<boolean> {
    return true;
  }

  /**
   * Whether somebody may only read, on every way in. Asked for each new connection and each request. What changes
   * something is refused with `read_only`, also inside of methods that they call. Must answer at once. Default: no.
   */
  mayOnlyRead(_identity: Identity | undefined): boolean {
    return false;
  }

  /**
   * Whether a new connection may only read, as {@link AgentBase.mayOnlyRead} says of an identity. Asked before it is sent
   * anything. Must answer at once: for anything but true and false it may only read, and the app is told.
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
   * Once per stay in memory, before anything else. What it throws goes to {@link AgentBase.onError} and fails what was
   * waiting; the next use tries again.
   * An agent may wake at any time, so everything here must be fine to do again.
   */
  onStart(_props?: Props): void | Promise<void> {}

  /** Answers HTTP requests to this agent. What it throws is answered with 500 and goes to {@link AgentBase.onError}. */
  onRequest(_request: Request): Response | Promise<Response> {
    return new Response("Not implemented", { status: 404 });
  }

  /** A client has connected. Its frames wait until this settles; throwing closes it with 1011. */
  onConnect(_connection: Connection, _context: ConnectionContext): void | Promise<void> {}

  /** A frame that is none of the framework's. What it throws goes to {@link AgentBase.onError}. */
  onMessage(_connection: Connection, _message: WSMessage): void | Promise<void> {}

  onClose(_connection: Connection, _code: number, _reason: string, _wasClean: boolean): void | Promise<void> {}

  /**
   * Something of this agent threw. It is in the host's log already (the option `log`); called by your own code, it puts it
   * there. Must not throw.
   */
  onError(error: unknown, _connection?: Connection): void | Promise<void> {
    const { host, telling } = this[parts];
    if (!telling) host.report(error, { stage: "onError" });
  }

  /** The methods that clients may call, with what was said of them. */
  getCallableMethods(): Map<string, CallableOptions> {
    return listCallables(this);
  }
}
