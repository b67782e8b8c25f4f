import { type Clock, systemClock } from "../base/time.ts";
import { newId } from "../base/id.ts";
import type { McpState } from "../wire/frames.ts";
import { HISTORY_PAGES, HISTORY_PARAM, type HistoryMode, SESSION_PARAM } from "../wire/history.ts";
import { isRecord } from "../base/json.ts";
import { type JsonObject, writeJson } from "../wire/json.ts";
import { agentChain, agentHttpUrl, type AgentLocation, type AgentRef, type Query, withQuery } from "./agent-url.ts";
import type { CallOf, CallOptions, CallStream, CallStreamOf, ClientStub, StateOf } from "./call-types.ts";
import { CALL_TIMEOUT_MS, callOptions, Calls, stubOf } from "./calls.ts";
import { AgentConnectionError, type ConnectionCloseEvent, disconnected } from "./connection-error.ts";
import { ReconnectingSocket, type ReconnectOptions } from "./reconnecting-socket.ts";

/** Options of {@link AgentClient}. The callbacks must not throw. */
export interface AgentClientOptions<State = unknown> extends AgentLocation, ReconnectOptions {
  /**
   * Parameters for the URL, such as a token. A function is asked before each connection and request; if it fails, the connection
   * is retried later.
   */
  readonly query?: Query | (() => Query | Promise<Query>);
  /** What this client calls itself; the same after each reconnect. Default: a random id. */
  readonly id?: string;
  /** Whether a chat is told the conversation's end, the rest on demand (`pages`, default), or all, as `useAgentChat` needs. */
  readonly history?: HistoryMode;
  /** The session of a chat agent to be in. Default: whichever is the current one. */
  readonly session?: string;
  /** Do not connect before `open()` is called. */
  readonly startClosed?: boolean;
  /** Of calls that do not stream. Default 30 s; 0: none. */
  readonly defaultCallTimeout?: number;
  readonly clock?: Clock;
  readonly onStateUpdate?: (state: State, source: "server" | "client") => void;
  /** The state that was set here was not taken. */
  readonly onStateUpdateError?: (message: string) => void;
  readonly onMcpUpdate?: (mcp: McpState) => void;
  readonly onIdentity?: (name: string, agent: string) => void;
  /** After a reconnect the server put us with another agent. */
  readonly onIdentityChange?: (oldName: string, newName: string, oldAgent: string, newAgent: string) => void;
  /** The connection is closed for good. */
  readonly onConnectionError?: (error: AgentConnectionError) => void;
}

/** The events of {@link AgentClient}. */
export interface AgentClientEvents {
  readonly open: Event;
  readonly close: ConnectionCloseEvent;
  readonly error: Event;
  /** Frames that are not the client's own business: of the chat, and of the app. */
  readonly message: MessageEvent<unknown>;
  /** State, identity or connection have changed. */
  readonly change: Event;
}

/** After so many tries that have led nowhere, it is said once. */
const WARN_AFTER_TRIES = 3;

type Listener<E> = ((event: E) => void) | { handleEvent(event: E): void };

/** A connection to an agent that reconnects. `new AgentClient<ChatAgent>({ … })` types state, `call` and `stub`. */
export class AgentClient<AgentT = unknown, State = StateOf<AgentT>> extends EventTarget {
  /** Callbacks, replaceable at any time. */
  options: AgentClientOptions<State>;
  readonly id: string;
  readonly history: HistoryMode;
  readonly stub: ClientStub<AgentT>;
  /** Calls a method. Sent when there is a connection; rejects when that is lost before the answer. */
  readonly call: CallOf<AgentT>;
  /** Calls a streaming method and iterates over what it sends. */
  readonly callStream: CallStreamOf<AgentT>;
  /** Why the connection is closed for good. */
  connectionError: AgentConnectionError | null = null;

  readonly #socket: ReconnectingSocket;
  readonly #calls: Calls;
  #session: string | undefined;
  /** What the connection under way was made with; null: there was none yet. */
  #sessionInUrl: string | undefined | null = null;
  #chain: readonly AgentRef[];
  #known: AgentRef | undefined;
  #state: State | undefined;
  #identified = false;
  #awaitingState = false;
  /** `close()` was called: nothing is wrong. */
  #leaving = false;
  #ready = newReady();
  #isRejected = false;
  #wasOpen = false;
  #failedTries = 0;
  #unlisten: (() => void) | undefined;

  constructor(options: AgentClientOptions<State>) {
    super();
    this.options = options;
    this.id = options.id ?? newId();
    this.history = options.history ?? HISTORY_PAGES;
    this.#session = options.session;
    this.#chain = agentChain(options);
    this.#socket = new ReconnectingSocket(() => this.#socketUrl(), options, {
      open: () => this.#opened(),
      message: (data) => this.#received(data),
      close: (event, final) => this.#closed(event, final),
      error: () => this.dispatchEvent(new Event("error")),
    });
    const timeout = options.defaultCallTimeout ?? CALL_TIMEOUT_MS;
    this.#calls = new Calls(
      (data, sent) => this.#socket.send(data, sent),
      () => this.connectionError,
      options.clock ?? systemClock,
      timeout,
    );
    const call = (method: string, args: readonly unknown[] = [], given?: CallOptions): Promise<unknown> =>
      this.#calls.call(method, args, callOptions(given));
    const stream = (method: string, args: readonly unknown[] = []): CallStream<unknown, unknown> =>
      this.#calls.stream(method, args);
    this.call = call as CallOf<AgentT>;
    this.callStream = stream as CallStreamOf<AgentT>;
    this.stub = stubOf(call) as ClientStub<AgentT>;
    if (options.startClosed !== true) this.open();
  }

  /** The session that every connection asks for; undefined: whichever is the current one. */
  get session(): string | undefined {
    return this.#session;
  }

  /** Asks for this session from the next connection on. Returns whether the current one must be moved: it has another. */
  useSession(session: string | undefined): boolean {
    this.#session = session;
    return this.#sessionInUrl !== null && this.#sessionInUrl !== session;
  }

  /** The class of the agent as URLs have it; of the leaf for children. */
  get agent(): string {
    return this.#leaf.agent;
  }
  get name(): string {
    return this.#leaf.name;
  }
  /** The whole address, root first. */
  get path(): readonly AgentRef[] {
    return this.#chain;
  }
  /** As last heard from the server, or set here. */
  get state(): State | undefined {
    return this.#state;
  }
  /** Whether the agent has said who it is (and its state, if it has one) on this connection. */
  get identified(): boolean {
    return this.#identified;
  }
  /**
   * Resolves when `identified`; a new promise after each close. Rejects when closed for good, with the `connectionError`, or
   * PerdureError `disconnected` after `close()`.
   */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }
  /** As of a `WebSocket`: 0 connecting, 1 open, 3 closed for good. */
  get readyState(): 0 | 1 | 3 {
    if (this.#socket.isOpen) return 1;
    return this.#socket.wanted ? 0 : 3;
  }

  /** Connects, if it was closed. @throws PerdureError `bad_config` when the address cannot be one. */
  open(): void {
    if (this.#socket.wanted) return;
    agentHttpUrl(this.options);
    if (this.#isRejected) this.#ready = newReady();
    this.#isRejected = false;
    this.connectionError = null;
    this.#listenForNetwork();
    this.#socket.open();
  }

  /** Closes for good. Calls that are under way are rejected. */
  close(code?: number, reason?: string): void {
    this.#leaving = true;
    this.#socket.close(code, reason);
    this.#leaving = false;
  }

  /** Sends a frame of the app; it waits while there is no connection. @throws PerdureError `limit` */
  send(data: string, sent?: () => void): void {
    this.#socket.send(data, sent);
  }

  /** Shows the new state here at once and sends it. If the server refuses it, `onStateUpdateError` is called. */
  setState(state: State): void {
    const frame = writeJson({ type: "cf_agent_state", state }, "The state");
    this.#setState(state, "client");
    this.#socket.send(frame);
  }

  /** The URL of the agent for requests, without query. `suffix` is appended to the path. */
  getHttpUrl(suffix = ""): string {
    return agentHttpUrl(this.options) + (suffix === "" ? "" : `/${suffix}`);
  }

  /** A request to the agent, with the same query as the connection. */
  async fetch(suffix = "", init?: RequestInit): Promise<Response> {
    return fetch(withQuery(this.getHttpUrl(suffix), await this.#query()), init);
  }

  override addEventListener<K extends keyof AgentClientEvents>(
    type: K,
    listener: Listener<AgentClientEvents[K]> | null,
    options?: boolean | AddEventListenerOptions,
  ): void {
    super.addEventListener(type, listener as EventListener, options);
  }

  override removeEventListener<K extends keyof AgentClientEvents>(
    type: K,
    listener: Listener<AgentClientEvents[K]> | null,
    options?: boolean | EventListenerOptions,
  ): void {
    super.removeEventListener(type, listener as EventListener, options);
  }

  get #leaf(): AgentRef {
    return this.#chain.at(-1) ?? { agent: "", name: "" };
  }

  #query(): Query | Promise<Query> {
    const { query } = this.options;
    return (typeof query === "function" ? query() : query) ?? {};
  }

  #socketUrl(): string | Promise<string> {
    const base = agentHttpUrl(this.options).replace(/^http/, "ws");
    const query = this.#query();
    const told = this.history === HISTORY_PAGES ? { [HISTORY_PARAM]: HISTORY_PAGES } : {};
    const full = (ready: Query) => {
      this.#sessionInUrl = this.#session;
      return withQuery(base, { ...ready, ...told, [SESSION_PARAM]: this.#session, _pk: this.id });
    };
    return query instanceof Promise ? query.then(full) : full(query);
  }

  #opened(): void {
    this.#wasOpen = true;
    this.connectionError = null;
    this.dispatchEvent(new Event("open"));
    this.#changed();
  }

  /** Nothing else would tell who has the wrong address: it is tried for ever. */
  #warnOnce(): void {
    if (this.#wasOpen || ++this.#failedTries !== WARN_AFTER_TRIES) return;
    console.warn(
      `AgentClient: no connection to ${agentHttpUrl(this.options)} after ${WARN_AFTER_TRIES} tries. Is the server there, at this ` +
        "host and port? It is tried again until there is one, or as often as `maxRetries` says.",
    );
  }

  #closed(event: ConnectionCloseEvent, final: boolean): void {
    if (!final) this.#warnOnce();
    if (final && !this.#leaving) this.connectionError = new AgentConnectionError(event);
    this.#calls.lost(final);
    // Who waits for the first connection goes on waiting for the next.
    if (this.#identified) this.#ready = newReady();
    this.#identified = false;
    this.#awaitingState = false;
    if (final) {
      this.#unlisten?.();
      this.#isRejected = true;
      this.#ready.reject(this.connectionError ?? disconnected("The connection was closed by close()."));
    }
    this.dispatchEvent(event);
    // Who heard of it may have opened it again.
    if (final && !this.#leaving && this.connectionError !== null)
      this.options.onConnectionError?.(this.connectionError);
    this.#changed();
  }

  #received(data: unknown): void {
    const frame = parseObject(data);
    if (frame === undefined || !this.#handled(frame)) this.dispatchEvent(new MessageEvent("message", { data }));
  }

  #handled(frame: JsonObject): boolean {
    switch (frame.type) {
      case "cf_agent_identity":
        this.#identity(frame);
        return true;
      case "cf_agent_state":
        this.#setState(frame.state as State, "server");
        if (this.#awaitingState) this.#isReady();
        return true;
      case "cf_agent_state_error":
        this.options.onStateUpdateError?.(String(frame.error));
        return true;
      case "cf_agent_mcp_servers":
        this.options.onMcpUpdate?.(frame.mcp as McpState);
        return true;
      case "rpc":
        this.#calls.answered(frame);
        return true;
      default:
        return false;
    }
  }

  #identity({ name, agent, stateFollows }: JsonObject): void {
    if (typeof name !== "string" || typeof agent !== "string") return;
    const before = this.#known;
    this.#known = { agent, name };
    this.#chain = [...this.#chain.slice(0, -1), this.#known];
    this.options.onIdentity?.(name, agent);
    if (before !== undefined && (before.name !== name || before.agent !== agent)) {
      this.options.onIdentityChange?.(before.name, name, before.agent, agent);
    }
    if (stateFollows === true) this.#awaitingState = true;
    else this.#isReady();
  }

  #isReady(): void {
    this.#awaitingState = false;
    this.#identified = true;
    this.#ready.resolve();
    this.#changed();
  }

  #setState(state: State, source: "server" | "client"): void {
    this.#state = state;
    this.options.onStateUpdate?.(state, source);
    this.#changed();
  }

  #changed(): void {
    this.dispatchEvent(new Event("change"));
  }

  /** A machine that is back on the network need not wait for the next try. */
  #listenForNetwork(): void {
    const page = globalThis as Partial<Pick<EventTarget, "addEventListener" | "removeEventListener">>;
    if (typeof page.addEventListener !== "function") return;
    const online = () => this.#socket.hurry();
    page.addEventListener("online", online);
    this.#unlisten = () => {
      page.removeEventListener?.("online", online);
      this.#unlisten = undefined;
    };
  }
}

/** Nobody has to wait for it. */
function newReady(): PromiseWithResolvers<void> {
  const ready = Promise.withResolvers<void>();
  ready.promise.catch(() => {});
  return ready;
}

function parseObject(data: unknown): JsonObject | undefined {
  if (typeof data !== "string" || !data.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(data);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
