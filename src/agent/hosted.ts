import { PerdureError } from "../error.ts";
import type { Identity } from "../identity.ts";
import type { AgentStep, HostedAgent, ReadVerdict, Socket } from "../port.ts";
import { leafOf } from "../wire/agent-path.ts";
import { encodeFrame } from "../wire/encode.ts";
import { isResponse, readVerdict } from "../wire/fetch-object.ts";
import { kebabCase } from "../wire/kebab.ts";
import { type ParsedFrame, parseFrame, readLongFrame } from "../wire/parse.ts";
import type { Agent } from "./agent.ts";
import { mcpOf } from "./agent-mcp.ts";
import type { Connection } from "./connection.ts";
import { runAs } from "./context.ts";
import { type AgentParts, parts } from "./parts.ts";
import { answerCall, refuseCall } from "./rpc.ts";
import { checkSettings } from "./setting-names.ts";

/** Refused frames whose feature emits the event. */
const TELLS_ITSELF: ReadonlySet<ParsedFrame["kind"]> = new Set(["rows-refused", "session-refused"]);

/** For whom something is done. */
interface Caller {
  readonly connection?: Connection;
  readonly request?: Request;
  readonly identity?: Identity | undefined;
}

/** Joins an agent to its host: every way in, each run as that agent, none of them throwing what a user did. */
export class Hosting implements HostedAgent {
  readonly #agent: Agent<object>;
  readonly #own: AgentParts<unknown>;
  /** Those that were turned away while they connected: the agent never hears of them. */
  readonly #refused = new WeakSet<Socket>();
  /** Those of which a long frame is being read, in pieces: what comes behind it waits, so that the order is kept. */
  readonly #reading = new WeakMap<Socket, Promise<void>>();

  constructor(agent: Agent<object>) {
    this.#agent = agent;
    this.#own = agent[parts];
  }

  async start(props: unknown): Promise<void> {
    const { host, features } = this.#own;
    await this.#reported("onStart", () => this.#agent.onStart(props as object | undefined));
    await this.#reported("settings", () => checkSettings(this.#agent, leafOf(host.path).className));
    for (const feature of features) {
      // The life may end while one of them waits; then there is nothing left to start.
      if (this.#own.halted) return;
      await this.#reported("start", () => feature.started?.());
    }
    if (this.#own.halted) return;
    if (!host.blank) this.#own.fibers.recover();
    this.#own.rearm();
  }

  request(request: Request, rest: string, identity?: Identity): Promise<Response> {
    return this.#reported("request", () => this.#respond(request, rest, identity), { request, identity });
  }

  connect(socket: Socket, request: Request): Promise<void> {
    const connection = this.#own.connections.of(socket);
    return this.#reported("onConnect", () => this.#connect(connection, socket, request), { connection, request });
  }

  async message(socket: Socket, data: string | Uint8Array): Promise<void> {
    if (this.#refused.has(socket)) return;
    while (this.#reading.has(socket)) await this.#reading.get(socket);
    const connection = this.#own.connections.of(socket);
    await this.#contained("onMessage", () => this.#receive(connection, data, socket), connection);
  }

  async close(socket: Socket, code: number, reason: string, wasClean: boolean): Promise<void> {
    if (this.#refused.has(socket)) return;
    while (this.#reading.has(socket)) await this.#reading.get(socket);
    const connection = this.#own.connections.of(socket);
    this.#own.host.emit("connection:closed", { connectionId: connection.id, code, reason });
    for (const feature of this.#own.features) feature.closed?.(connection);
    await this.#contained("onClose", () => this.#agent.onClose(connection, code, reason, wasClean), connection);
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
    return this.#as(() => Reflect.apply(target, agent, args) as unknown);
  }

  admitChild(request: Request, child: AgentStep, identity?: Identity): Promise<ReadVerdict> {
    const admit = async () => {
      const verdict = readVerdict(await this.#agent.onBeforeSubAgent(request, child), "onBeforeSubAgent()");
      if (verdict.refusal === undefined) this.#own.children.admit(child);
      return verdict;
    };
    return this.#reported("onBeforeSubAgent", admit, { request, identity });
  }

  lend(value: object): object | undefined {
    for (const feature of this.#own.features) {
      const lent = feature.lend?.(value);
      if (lent !== undefined) return lent;
    }
    return undefined;
  }

  childRemoved(child: AgentStep): void {
    this.#own.children.forget(child.className, child.name);
  }

  drain(): void {
    this.#own.draining = true;
    for (const feature of this.#own.features) feature.drain?.();
  }

  halt(reason: unknown): void {
    this.#own.halt(reason);
  }

  left(): void {
    for (const feature of this.#own.features) feature.left?.();
  }

  async #connect(connection: Connection, socket: Socket, request: Request): Promise<void> {
    const agent = this.#agent;
    const context = { request };
    connection.isReadonly = agent.shouldConnectionBeReadonly(connection, context);
    connection.isQuiet = !agent.shouldSendProtocolMessages(connection, context);
    for (const feature of this.#own.features) {
      const admitted = feature.admit?.(connection) ?? true;
      if (admitted === true || (await admitted)) continue;
      this.#refused.add(socket);
      return;
    }
    const tags = await agent.getConnectionTags(connection, context);
    this.#greet(connection);
    socket.join([...tags]);
    this.#own.host.emit("connection:opened", { connectionId: connection.id });
    await agent.onConnect(connection, context);
  }

  #greet(connection: Connection): void {
    const { host, features, state, options } = this.#own;
    for (const feature of features) feature.connecting?.(connection);
    if (connection.isQuiet) return;
    const stateFrame = state.frame();
    if (options.sendIdentityOnConnect ?? true) {
      const leaf = host.path.at(-1) ?? host.path[0];
      const identity = { type: "cf_agent_identity", name: leaf.name, agent: kebabCase(leaf.className) } as const;
      connection.send(encodeFrame(stateFrame === undefined ? identity : { ...identity, stateFollows: true }));
    }
    if (stateFrame !== undefined) connection.send(stateFrame);
    connection.send(this.#agent[mcpOf].greeting);
  }

  async #receive(connection: Connection, data: string | Uint8Array, socket: Socket): Promise<void> {
    const frame = parseFrame(data);
    if (frame.kind !== "chat-long" && frame.kind !== "transcript-long") return this.#take(connection, frame, data);
    const reading = Promise.withResolvers<void>();
    this.#reading.set(socket, reading.promise);
    let read: ParsedFrame = { kind: "other" };
    try {
      read = await readLongFrame(frame, () => this.#own.host.breathe());
    } finally {
      this.#reading.delete(socket);
      // What waits goes on when this frame has been taken: nothing is awaited in between.
      reading.resolve();
    }
    return this.#take(connection, read, data);
  }

  async #take(connection: Connection, frame: ParsedFrame, data: string | Uint8Array): Promise<void> {
    const { host, features, state, options } = this.#own;
    if (frame.kind === "rpc") return answerCall(host, this.#agent, connection, frame);
    if (frame.kind === "state") return state.setFromClient(frame.state, connection, options.allowClientState ?? false);
    if ("reason" in frame && frame.reason !== undefined && !TELLS_ITSELF.has(frame.kind)) {
      host.emit("frame:refused", { connectionId: connection.id, reason: frame.reason });
    }
    if (frame.kind === "refused") return;
    if (frame.kind === "rpc-refused") return refuseCall(connection, frame);
    if (frame.kind === "state-refused") return state.refuseClient(connection, frame.reason);
    if (frame.kind !== "other") {
      for (const feature of features) {
        // Not awaited without need: a call behind this frame would be answered before the frame is handled.
        const taken = feature.frame?.(connection, frame) ?? false;
        if (typeof taken === "boolean" ? taken : await taken) return;
      }
    }
    await this.#agent.onMessage(connection, data);
  }

  async #respond(request: Request, rest: string, identity: Identity | undefined): Promise<Response> {
    for (const feature of this.#own.features) {
      const response = await feature.request?.(request, rest, identity);
      if (response !== undefined) return response;
    }
    const response: unknown = await this.#agent.onRequest(request);
    if (isResponse(response)) return response;
    throw new PerdureError("bad_state", `onRequest() of ${this.#own.host.id} returned no Response.`);
  }

  #as<T>(work: () => T, { connection, request, identity = connection?.identity }: Caller = {}): T {
    const current = { agent: this.#agent, connection, request, ...(identity !== undefined && { identity }) };
    return runAs(this.#own.host.context, current, work);
  }

  /** What is thrown is told to the agent, and to the caller. */
  async #reported<T>(stage: string, work: () => T | Promise<T>, caller: Caller = {}): Promise<T> {
    try {
      return await this.#as(work, caller);
    } catch (thrown) {
      await this.#own.failed(thrown, { stage }, caller.connection);
      throw thrown;
    }
  }

  /** What is thrown is told to the agent, and that is all: nobody else waits. */
  async #contained(stage: string, work: () => void | Promise<void>, connection: Connection): Promise<void> {
    try {
      await this.#as(work, { connection });
    } catch (thrown) {
      await this.#own.failed(thrown, { stage }, connection);
    }
  }
}
