import { PerdureError } from "../base/error.ts";
import type { Identity } from "../base/identity.ts";
import type { AgentStep, HostedAgent, ReadVerdict, Socket } from "../port.ts";
import { leafOf } from "../wire/agent-path.ts";
import { closeCode, refusalCode, UNKNOWN_SESSION } from "../wire/close-code.ts";
import { encodeFrame } from "../wire/encode.ts";
import { isResponse, readVerdict, type Verdict } from "../wire/fetch-object.ts";
import { kebabCase } from "../wire/kebab.ts";
import { type ParsedFrame, parseFrame, readLongFrame } from "../wire/parse.ts";
import { SentBefore } from "../wire/sent-before.ts";
import { yesOrNo } from "../base/yes-or-no.ts";
import {
  actOf,
  ACTS,
  type Ask,
  authorize,
  type Judge,
  type Refusal,
  type RequestCaller,
  tellRefused,
  type Viewer,
} from "../door/authorize.ts";
import { causeOfCaller, waitingNow } from "../parts/circle.ts";
import { type Connection, type ConnectionContext, socketOf, type WSMessage } from "../door/connection.ts";
import { runAs, runFor, withCause, writeRefusal } from "../parts/current.ts";
import { type AgentPart, parts } from "../parts/part.ts";
import { judgeOf, type Judging } from "../parts/authority.ts";
import type { AgentOptions, AgentParts } from "../parts/agent-parts.ts";
import { answerRoute, findRoute, refuse } from "../door/routes.ts";
import { answerCall, refuseCall } from "./rpc.ts";
import type { ContextOverflow } from "../context/overflow.ts";
import type { RetryOptions } from "../work/retry.ts";
import { namesOf, refuseUnknown } from "../base/known-options.ts";
import type { Budget, Budgets } from "../ledger/budget.ts";
import type { MediaRetention } from "../media/media.ts";
import type { ChatRecoveryConfig, MessageConcurrency } from "../turn/policy.ts";
import type { TitleOptions } from "../parts/titles.ts";

const FORBIDDEN = 403;

/** What a host has an agent do, in the words of its class. */
interface HostedPolicy extends Judging {
  readonly [parts]: AgentParts<unknown>;
  onStart(props?: object): void | Promise<void>;
  onRequest(request: Request): Response | Promise<Response>;
  onConnect(connection: Connection, context: ConnectionContext): void | Promise<void>;
  onMessage(connection: Connection, message: WSMessage): void | Promise<void>;
  onClose(connection: Connection, code: number, reason: string, wasClean: boolean): void | Promise<void>;
  onBeforeSubAgent(request: Request, child: AgentStep): Verdict | Promise<Verdict>;
  getConnectionTags(connection: Connection, context: ConnectionContext): readonly string[] | Promise<readonly string[]>;
  mayOnlyRead(identity: Identity | undefined): boolean;
  shouldConnectionBeReadonly(connection: Connection, context: ConnectionContext): boolean;
  shouldSendProtocolMessages(connection: Connection, context: ConnectionContext): boolean;
}

/** For whom something is done. */
interface ForWhom {
  readonly connection?: Connection;
  readonly request?: Request;
  readonly identity?: Identity | undefined;
  /** Who may only read, perhaps: what they have the app's code do may not write. */
  readonly viewer?: Viewer;
}

/** Frames that the agent itself takes, whatever parts it has. */
const OWN_KINDS: ReadonlySet<ParsedFrame["kind"]> = new Set([
  ...(["rpc", "rpc-refused", "state", "state-refused", "other", "refused"] as const),
]);
/** Refused frames whose part emits the event. */
const TELLS_ITSELF: ReadonlySet<ParsedFrame["kind"]> = new Set(["rows-refused", "session-refused"]);
/** Frames that may be long, and are read or looked through in pieces. */
const LOOKED_THROUGH: ReadonlySet<ParsedFrame["kind"]> = new Set(["chat-long", "transcript-long", "chat-messages"]);

/** Of how many connections it is remembered what they have sent of a long conversation: of those that sent last. */
const REMEMBERED_CONNECTIONS = 2;

function isLong(frame: ParsedFrame): frame is Extract<ParsedFrame, { kind: "chat-long" | "transcript-long" }> {
  return frame.kind === "chat-long" || frame.kind === "transcript-long";
}

/** Joins an agent to its host: every way in, each run as that agent, none of them throwing what a user did. */
export class Hosting implements HostedAgent {
  readonly #agent: HostedPolicy;
  readonly #own: AgentParts<unknown>;
  /** Those that were turned away while they connected: the agent never hears of them. */
  readonly #refused = new WeakSet<Socket>();
  /** Connections whose last frame is still judged or read: when that has begun. The next frame waits for it. */
  readonly #lines = new WeakMap<Socket, Promise<void>>();
  /** What connections have sent of long conversations. The one that sent last is last. */
  readonly #sent = new Map<Socket, SentBefore>();
  readonly #judge: Judge;

  /** @param base the rules that say nothing: a class that has these is not asked. */
  constructor(agent: HostedPolicy, base: Judging) {
    this.#agent = agent;
    this.#own = agent[parts];
    this.#judge = judgeOf(agent, base, this.#own);
  }

  async start(props: unknown): Promise<void> {
    const { host } = this.#own;
    await this.#reported("onStart", () => this.#agent.onStart(props as object | undefined));
    await this.#reported("settings", () => checkSettings(this.#agent, leafOf(host.path).className));
    for (const part of this.#own.parts) {
      // The life may end while one of them waits; then there is nothing left to start.
      if (this.#own.halted) return;
      await this.#reported("start", () => part.started?.());
    }
    if (this.#own.halted) return;
    if (!host.blank) this.#own.fibers.recover();
    this.#own.rearm();
  }

  request(request: Request, rest: string, identity?: Identity, mayOnlyRead = false): Promise<Response> {
    const respond = () => this.#respond(this.#callerOf(request, identity, mayOnlyRead), rest);
    return this.#reported("request", respond, { request, identity });
  }

  connect(socket: Socket, request: Request): Promise<void> {
    const connection = this.#own.connections.of(socket);
    return this.#reported("onConnect", () => this.#connect(connection, socket, request), { connection, request });
  }

  async message(socket: Socket, data: string | Uint8Array): Promise<void> {
    if (this.#refused.has(socket)) return;
    const connection = this.#own.connections.of(socket);
    const frame = parseFrame(data, this.#sent.get(socket));
    const ask = this.#askOf(frame);
    const judge = () => this.#as(() => authorize(this.#judge, connection, ask), { connection });
    const line = this.#lines.get(socket);
    const verdict = line === undefined ? judge() : line.then(judge);
    if (!(verdict instanceof Promise) && !LOOKED_THROUGH.has(frame.kind))
      return this.#take(connection, frame, data, ask, verdict);
    let taken: Promise<void> | undefined;
    const begin = async () => {
      let refusal = await verdict;
      let read: ParsedFrame = frame;
      if (refusal === undefined && isLong(frame) && this.#takerOf(frame) !== undefined) {
        read = await readLongFrame(frame, () => this.#own.host.breathe());
        if (read.kind === "chat-request" && frame.kind === "chat-long" && frame.isEscaped !== true)
          this.#sentBy(socket).remember(String(data), frame.text, read.messages);
        // What the verdict was about may be otherwise by now.
        refusal = await judge();
      }
      taken = this.#take(connection, refusal === undefined ? read : frame, data, ask, refusal);
      if (read.kind === "chat-messages") await taken;
    };
    const begun = begin().then(() => {
      if (this.#lines.get(socket) === begun) this.#lines.delete(socket);
    });
    this.#lines.set(socket, begun);
    await begun;
    await taken;
  }

  #sentBy(socket: Socket): SentBefore {
    const sent = this.#sent.get(socket) ?? new SentBefore();
    this.#sent.delete(socket);
    this.#sent.set(socket, sent);
    const [oldest] = this.#sent.keys();
    if (oldest !== undefined && this.#sent.size > REMEMBERED_CONNECTIONS) this.#sent.delete(oldest);
    return sent;
  }

  async close(socket: Socket, code: number, reason: string, wasClean: boolean): Promise<void> {
    this.#sent.delete(socket);
    if (this.#refused.has(socket)) return;
    while (this.#lines.has(socket)) await this.#lines.get(socket);
    const connection = this.#own.connections.of(socket);
    this.#own.host.emit("connection:closed", { connectionId: connection.id, code, reason });
    for (const part of this.#own.parts) part.closed?.(connection);
    const whom = { connection, viewer: connection };
    await this.#contained("onClose", () => this.#agent.onClose(connection, code, reason, wasClean), whom);
  }

  alarm(): Promise<void> {
    for (const work of this.#own.works()) this.#as(() => work.runDue());
    this.#own.rearm();
    return Promise.resolve();
  }

  async invoke(method: string, args: readonly unknown[]): Promise<unknown> {
    const agent = this.#agent;
    const target: unknown = method in Object.prototype ? undefined : Reflect.get(agent, method);
    if (typeof target !== "function") {
      throw new PerdureError("not_found", `${this.#own.host.id} has no method "${method}".`);
    }
    // For whom it is asked: who may only read there, may only read here.
    const waiting = waitingNow();
    const nobody = { agent, connection: undefined, request: undefined, ...withCause(causeOfCaller()) };
    const current = { ...nobody, ...(waiting !== undefined && { waiting }) };
    return runAs(this.#own.host.context, current, () => Reflect.apply(target, agent, args) as unknown);
  }

  refusal(): PerdureError | undefined {
    return writeRefusal();
  }

  admitChild(request: Request, child: AgentStep, identity?: Identity): Promise<ReadVerdict> {
    const admit = async () => {
      const caller = this.#callerOf(request, identity);
      const ask = { act: "child.reach", on: { child } } as const;
      const refusal = await authorize(this.#judge, caller, ask);
      if (refusal !== undefined) return { refusal: refuse(refusal) };
      let said: unknown;
      try {
        said = await this.#as(() => this.#agent.onBeforeSubAgent(request, child), {
          request,
          identity,
          viewer: caller,
        });
      } catch (thrown) {
        if (!PerdureError.is(thrown, "read_only") || !caller.isReadonly) throw thrown;
        return { refusal: refuse(tellRefused(this.#judge, caller, ask, thrown)) };
      }
      const verdict = readVerdict(said, "onBeforeSubAgent()");
      const unreachable = verdict.refusal ?? this.#own.refuseChild(child);
      // A child may not know who may only read, yet is part of what such a person looks at.
      return unreachable === undefined ? { ...verdict, mayOnlyRead: caller.isReadonly } : { refusal: unreachable };
    };
    return this.#reported("onBeforeSubAgent", admit, { request, identity });
  }

  lend(value: object): object | undefined {
    for (const part of this.#own.parts) {
      const lent = part.lend?.(value);
      if (lent !== undefined) return lent;
    }
    return undefined;
  }

  childMade(child: AgentStep): void {
    this.#own.children.admit(child);
  }

  childRemoved(child: AgentStep): void {
    this.#own.children.forget(child.className, child.name);
  }

  drain(): void {
    this.#own.draining = true;
    for (const part of this.#own.parts) part.drain?.();
  }

  halt(reason: unknown): void {
    this.#own.halt(reason);
  }

  left(): void {
    for (const part of this.#own.parts) part.left?.();
  }

  async #connect(connection: Connection, socket: Socket, request: Request): Promise<void> {
    const agent = this.#agent;
    const context = { request };
    const isViewer = agent.shouldConnectionBeReadonly(connection, context);
    connection.isReadonly =
      this.#flag(isViewer, "shouldConnectionBeReadonly()", true) ||
      this.#mayOnlyRead(connection.identity) ||
      socket.mayOnlyRead === true;
    const isTold = agent.shouldSendProtocolMessages(connection, context);
    connection.isQuiet = !this.#flag(isTold, "shouldSendProtocolMessages()", false);
    const verdict = authorize(this.#judge, connection, { act: "connect" });
    const refusal = verdict instanceof Promise ? await verdict : verdict;
    if (refusal !== undefined) {
      this.#refused.add(socket);
      if (refusal.code === "not_found") socket.close(closeCode.unknownSession, UNKNOWN_SESSION);
      else socket.close(refusalCode(FORBIDDEN), "not allowed");
      return;
    }
    await this.#as(() => this.#welcome(connection, socket, request), { connection, request, viewer: connection });
  }

  async #welcome(connection: Connection, socket: Socket, request: Request): Promise<void> {
    const context = { request };
    const tags = await this.#agent.getConnectionTags(connection, context);
    this.#greet(connection);
    socket.join([...tags]);
    this.#own.host.emit("connection:opened", { connectionId: connection.id });
    await this.#agent.onConnect(connection, context);
  }

  /** What a hook said that must answer at once; if it did not say true or false, what is safe, and the app hears of it. */
  #flag(said: unknown, hook: string, safe: boolean): boolean {
    try {
      return yesOrNo(said, hook);
    } catch (thrown) {
      this.#judge.failed(thrown, hook);
      return safe;
    }
  }

  #mayOnlyRead(identity: Identity | undefined): boolean {
    return this.#flag(this.#agent.mayOnlyRead(identity), "mayOnlyRead()", true);
  }

  #callerOf(request: Request, identity: Identity | undefined, isViewer = false): RequestCaller {
    return { id: "", uri: request.url, identity, request, isReadonly: this.#mayOnlyRead(identity) || isViewer };
  }

  #greet(connection: Connection): void {
    const { host, state, options } = this.#own;
    for (const part of this.#own.parts) part.connecting?.(connection);
    if (connection.isQuiet) return;
    const stateFrame = state.frame();
    if (options.sendIdentityOnConnect ?? true) {
      const leaf = host.path.at(-1) ?? host.path[0];
      const identity = { type: "cf_agent_identity", name: leaf.name, agent: kebabCase(leaf.className) } as const;
      connection.send(encodeFrame(stateFrame === undefined ? identity : { ...identity, stateFollows: true }));
    }
    if (stateFrame !== undefined) connection.send(stateFrame);
    connection.send(this.#own.mcp.greeting);
  }

  #askOf(frame: ParsedFrame): Ask {
    const isOurs = OWN_KINDS.has(frame.kind) || this.#takerOf(frame) !== undefined;
    // To an agent without a chat, a frame of one is a message like any other.
    return isOurs ? actOf(frame) : { act: "message" };
  }

  #takerOf({ kind }: ParsedFrame): AgentPart | undefined {
    return this.#own.parts.find(({ kinds }) => kinds?.has(kind));
  }

  #take(
    connection: Connection,
    frame: ParsedFrame,
    data: string | Uint8Array,
    { act }: Ask,
    refusal: Refusal,
  ): Promise<void> {
    // It was sent away, and has not heard of it, or does not care.
    if (socketOf(connection).dismissed) return Promise.resolve();
    const whom = { connection, ...(ACTS[act] === "call" && { viewer: connection }) };
    const work =
      refusal === undefined
        ? () => this.#receive(connection, frame, data)
        : () => this.#refuse(connection, frame, refusal);
    return this.#contained("onMessage", work, whom);
  }

  /** The app's own frames. Nobody waits for an answer, and what a viewer cannot write is no failure of the agent. */
  async #onMessage(connection: Connection, data: string | Uint8Array): Promise<void> {
    try {
      await this.#agent.onMessage(connection, data);
    } catch (thrown) {
      if (!PerdureError.is(thrown, "read_only") || !connection.isReadonly) throw thrown;
      tellRefused(this.#judge, connection, { act: "message" }, thrown);
    }
  }

  /** Not a promise without need: a call behind this frame would be answered before the frame is handled. */
  #receive(connection: Connection, frame: ParsedFrame, data: string | Uint8Array): void | Promise<void> {
    const { host, state, options } = this.#own;
    if (frame.kind === "rpc") return answerCall(host, this.#agent, connection, frame);
    if (frame.kind === "state") return state.setFromClient(frame.state, connection, options.allowClientState ?? false);
    if ("reason" in frame && frame.reason !== undefined && !TELLS_ITSELF.has(frame.kind)) {
      host.emit("frame:refused", { connectionId: connection.id, reason: frame.reason });
    }
    if (frame.kind === "refused") return;
    if (frame.kind === "rpc-refused") return refuseCall(connection, frame.id, frame.reason);
    if (frame.kind === "state-refused") return state.tellRefused(connection, frame.reason);
    const taker = this.#takerOf(frame);
    return taker === undefined ? this.#onMessage(connection, data) : taker.frame?.(connection, frame);
  }

  /** In the frame that whoever asked waits for, if there is one. */
  #refuse(connection: Connection, frame: ParsedFrame, error: PerdureError): void {
    if (frame.kind === "rpc") refuseCall(connection, frame.id, error.message);
    else if (frame.kind === "state") this.#own.state.refuse(connection, error);
    else this.#takerOf(frame)?.refuse?.(connection, frame, error);
  }

  async #respond(caller: RequestCaller, rest: string): Promise<Response> {
    const { request, identity } = caller;
    const insist = async (ask: Ask) => {
      // Asked anew: since the request came, its sender may have become one who may only read.
      if (!caller.isReadonly && this.#mayOnlyRead(identity)) (caller as { isReadonly: boolean }).isReadonly = true;
      const refusal = await authorize(this.#judge, caller, ask);
      if (refusal !== undefined) throw refusal;
    };
    for (const { routes } of this.#own.parts) {
      const found = routes && findRoute(routes, request, rest);
      if (found !== undefined) return answerRoute(this.#own.host, found, caller, rest, insist);
    }
    const refusal = await authorize(this.#judge, caller, { act: "request" });
    if (refusal !== undefined) return refuse(refusal);
    const whom = { request, identity, viewer: caller };
    let response: unknown;
    try {
      response = await this.#as(() => this.#agent.onRequest(request), whom);
    } catch (thrown) {
      if (!PerdureError.is(thrown, "read_only") || !caller.isReadonly) throw thrown;
      return refuse(tellRefused(this.#judge, caller, { act: "request" }, thrown));
    }
    if (isResponse(response)) return response;
    throw new PerdureError("bad_state", `onRequest() of ${this.#own.host.id} returned no Response.`);
  }

  #as<T>(work: () => T, { connection, request, identity = connection?.identity, viewer }: ForWhom = {}): T {
    const current = { agent: this.#agent, connection, request, ...(identity !== undefined && { identity }) };
    return runFor(this.#own.host.context, current, viewer, work);
  }

  /** What is thrown is told to the agent, and to the caller. */
  async #reported<T>(stage: string, work: () => T | Promise<T>, whom: ForWhom = {}): Promise<T> {
    try {
      return await this.#as(work, whom);
    } catch (thrown) {
      await this.#own.failed(thrown, { stage }, whom.connection);
      throw thrown;
    }
  }

  /** What is thrown is told to the agent, and that is all: nobody else waits. */
  async #contained(stage: string, work: () => void | Promise<void>, whom: ForWhom): Promise<void> {
    try {
      await this.#as(work, whom);
    } catch (thrown) {
      await this.#own.failed(thrown, { stage }, whom.connection);
    }
  }
}

const options = namesOf<AgentOptions>()("sendIdentityOnConnect allowClientState retry fiberRecoveryMaxAgeMs");
const retry = namesOf<RetryOptions>()("maxAttempts baseDelayMs maxDelayMs");
const budget = namesOf<Budget>()("maxTokens maxCost soft");
const budgets = namesOf<Budgets>()("turn session agent");
const chatRecovery = namesOf<ChatRecoveryConfig>()(
  "maxAttempts maxAgeMs maxNoProgressAttempts noProgressTimeoutMs shouldKeepRecovering terminalMessage",
  "onExhausted",
);
const contextOverflow = namesOf<ContextOverflow>()("reactive maxRetries proactive background coldAfterMs");
const proactive = namesOf<Exclude<ContextOverflow["proactive"], boolean | undefined>>()(
  "maxInputTokens threshold maxCompactions",
);
const mediaRetention = namesOf<MediaRetention>()("keepInMessages days address");
const titles = namesOf<TitleOptions>()("model after");
const messageConcurrency = namesOf<Exclude<MessageConcurrency, string>>()("strategy debounceMs");

/** Settings that are objects, by path. Unknown names in them are refused; not beside them, as a class may have its own fields. */
const settings: Readonly<Record<string, Readonly<Record<string, true>>>> = {
  ...{ budgets, "budgets.turn": budget, "budgets.session": budget, "budgets.agent": budget },
  ...{ chatRecovery, contextOverflow, "contextOverflow.proactive": proactive, mediaRetention, titles },
  ...{ messageConcurrency, waitForMcpConnections: { timeout: true } },
};

/** Refuses settings with unknown names, of an agent and of its class. @throws PerdureError `bad_config` */
function checkSettings(agent: object, className: string): void {
  const own = (agent.constructor as { readonly options?: AgentOptions }).options;
  refuseUnknown(own, options, `static options of ${className}`);
  refuseUnknown(own?.retry, retry, `static options of ${className}: retry`);
  for (const [path, names] of Object.entries(settings)) {
    const value = path.split(".").reduce<unknown>((at, key) => (Object(at) as Record<string, unknown>)[key], agent);
    refuseUnknown(value, names, `${path} of ${className}`);
  }
}
