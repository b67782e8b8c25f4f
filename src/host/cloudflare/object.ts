import { errorText, PerdureError } from "../../base/error.ts";
import type { Identity } from "../../base/identity.ts";
import { newId } from "../../base/id.ts";
import { backgroundClock } from "../../base/time.ts";
import type { AgentPath, AgentStep, AsyncContext, HostedAgent, HostedAgentClass } from "../../port.ts";
import { agentId, buildAgentPath, leafOf, parseAgentId } from "../../wire/agent-path.ts";
import { closeCode, sendableCode } from "../../wire/close-code.ts";
import { parseConnectQuery } from "../../wire/connect-query.ts";
import { boundedRequest } from "../genuine-request.ts";
import type { HostSocket } from "../host-socket.ts";
import type { LifeSurroundings } from "../life.ts";
import type { LogEntry } from "../log.ts";
import type { Publish } from "../reach.ts";
import type { Registry } from "../registry.ts";
import { Resident } from "../resident.ts";
import { failureResponse } from "../route.ts";
import { transfer } from "../transfer.ts";
import { emptyBucket } from "./bucket-blobs.ts";
import { ObjectAlarm } from "./object-alarm.ts";
import type { ObjectLinks, Passport, RequestHead, SentVerdict } from "./object-links.ts";
import { received } from "./object-links.ts";
import { hasTables } from "./object-rows.ts";
import { forgetSpilled, keptSockets, newSocket } from "./object-socket.ts";
import { ObjectStore } from "./object-store.ts";
import { type Bucket, type ObjectState, type PlatformSocket, socketPair, upgraded } from "./platform.ts";

/** A deletion that was cut off is taken up again after this. */
const REMOVE_AGAIN_MS = 1_000;

/** Rows of the host's own, beside those of the agent. */
const KEY = { id: "perdure:id", doomed: "perdure:doomed", listed: "perdure:listed" } as const;
/** Children that have rows, and those that are gone and that the agent has not heard of. */
const CHILD = "perdure:child:";
const LOST = "perdure:lost:";

/** What all objects of a host share. */
export interface ObjectHost {
  readonly registry: Registry;
  readonly links: ObjectLinks;
  readonly context: AsyncContext;
  readonly env: object;
  readonly props: unknown;
  readonly prefix: string;
  readonly publish: Publish;
  readonly log: (entry: LogEntry) => void;
  readonly heartbeatMs: number;
  readonly maxBodyBytes: number;
  readonly maxConnections: number;
  /** Where large bytes go; undefined: into rows. */
  readonly bucket: () => Bucket | undefined;
}

/**
 * One agent in its object: the same {@link Resident} as in a process, with the platform around it. What is due rings the object's
 * alarm, sockets stay with the platform while the object leaves memory, and other agents are other objects.
 */
export class ResidentObject implements LifeSurroundings {
  readonly clock = backgroundClock;
  readonly dueClock: ObjectAlarm;
  readonly context: AsyncContext;
  readonly env: object;
  readonly props: unknown;
  readonly storage: LifeSurroundings["storage"];
  readonly publish: Publish;
  readonly #host: ObjectHost;
  readonly #ctx: ObjectState;
  readonly #id: string;
  readonly #path: AgentPath;
  readonly #resident: Resident;
  readonly #sockets = new Map<PlatformSocket, HostSocket>();
  #removing: Promise<void> | undefined;
  #isNamed = false;

  constructor(host: ObjectHost, ctx: ObjectState) {
    const id = ctx.id.name ?? ctx.storage.kv.get(KEY.id);
    if (typeof id !== "string") {
      throw new PerdureError(
        "bad_state",
        "This object has no agent: objects are named by the host, as in idFromName(id).",
      );
    }
    this.#host = host;
    this.#ctx = ctx;
    this.#id = id;
    this.#path = parseAgentId(id);
    this.context = host.context;
    this.env = host.env;
    this.props = host.props;
    this.publish = host.publish;
    this.dueClock = new ObjectAlarm(ctx.storage, host.heartbeatMs, (work) => ctx.waitUntil(work));
    this.storage = this.#openStorage();
    this.#resident = new Resident(id, this.#path, this);
    for (const [ws, socket] of keptSockets(ctx.storage, ctx.getWebSockets())) {
      // Whoever was being greeted then is not greeted twice.
      if (!socket.ready) ws.close(closeCode.serviceRestart, "host restarts");
      else this.#adopt(ws, socket);
    }
  }

  // What the Worker and other objects ask.

  async fetch(request: Request, passport: Passport): Promise<Response> {
    try {
      if (request.headers.get("upgrade")?.toLowerCase() === "websocket") return this.#connect(request, passport);
      const { rest, identity, mayOnlyRead } = passport;
      const bounded = boundedRequest(request, this.#host.maxBodyBytes);
      return await this.#resident.use(async (agent, life) => {
        const response = await agent.request(bounded, rest, identity, mayOnlyRead);
        await life.gate.settled();
        return response;
      });
    } catch (thrown) {
      return failureResponse(thrown);
    }
  }

  exists(): boolean {
    return hasTables(this.#ctx.storage);
  }

  invoke(method: string, args: readonly unknown[], props?: unknown): Promise<unknown> {
    return this.#resident.use(async (agent, life) => {
      const value = await agent.invoke(method, args);
      await life.gate.settled();
      return transfer(value, agent);
    }, props);
  }

  async admit(head: RequestHead, child: AgentStep, identity: Identity | undefined): Promise<SentVerdict> {
    const { url, method, headers } = head;
    const request = new Request(url, { method, headers: headers as [string, string][] });
    const { request: other, ...said } = await this.#resident.use((agent) => agent.admitChild(request, child, identity));
    return { ...said, ...(other !== undefined && { request: headOf(other) }) };
  }

  /** A child is about to store its first row: it is deleted with this agent, and listed by it. */
  async childMade(child: AgentStep): Promise<void> {
    this.#ctx.storage.kv.put(CHILD + agentId([...this.#path, child]), true);
    await this.#resident.childMade(child);
  }

  async childGone(child: AgentStep): Promise<void> {
    const { kv } = this.#ctx.storage;
    const id = agentId([...this.#path, child]);
    kv.delete(CHILD + id);
    // An agent without rows lists nobody.
    if (!this.exists()) return;
    kv.put(LOST + id, true);
    await this.#resident.tellLost();
  }

  endLife(reason: unknown): void {
    this.#resident.end(new PerdureError("agent_gone", `${this.#id} was aborted.`, { cause: reason }));
    for (const kid of this.#kids()) void this.#host.links.of(parseAgentId(kid)).perdureAbort(errorText(reason));
  }

  /** Deletes the agent with all below it. Cut off, it is taken up again by the object's alarm. */
  removeSelf(): Promise<void> {
    this.#removing ??= this.#remove().finally(() => {
      this.#removing = undefined;
    });
    return this.#removing;
  }

  // What the platform tells.

  message(ws: PlatformSocket, data: string | ArrayBuffer): void {
    const socket = this.#sockets.get(ws);
    if (socket !== undefined) this.#resident.message(socket, typeof data === "string" ? data : new Uint8Array(data));
  }

  disconnected(ws: PlatformSocket, code: number, reason: string, wasClean: boolean): void {
    const socket = this.#sockets.get(ws);
    if (socket === undefined) return;
    this.#sockets.delete(ws);
    forgetSpilled(this.#ctx.storage, ws);
    answerClose(ws, code);
    this.#resident.disconnected(socket, code, reason, wasClean);
  }

  async rang(): Promise<void> {
    if (this.#isDoomed) return this.removeSelf();
    const { className } = leafOf(this.#path);
    if (!this.#host.registry.has(className)) {
      const words = `No agent class is called "${className}" any more; its work is kept until it is registered again.`;
      return this.report(this.#id, new PerdureError("unknown_agent", words), { stage: "wake" });
    }
    // It was cut off, or is due: its start asks again for what it waits for.
    if (!this.#resident.live) this.#resident.wakeUp();
    this.dueClock.rang();
  }

  // What the life asks of its surroundings.

  report(agent: string, error: unknown, about: Parameters<LifeSurroundings["report"]>[2]): void {
    this.#host.log({ agent, ...about, error, timestamp: this.clock.now() });
  }

  async call(
    path: AgentPath,
    method: string,
    args: readonly unknown[],
    { caller }: { readonly caller: HostedAgent | undefined },
  ): Promise<unknown> {
    this.#host.registry.get(leafOf(path).className);
    const input = transfer(args, caller);
    return agentId(path) === this.#id ? this.invoke(method, input) : this.#host.links.call(path, method, input);
  }

  breathe(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, 0));
  }

  classNameOf(cls: HostedAgentClass): string {
    return this.#host.registry.nameOf(cls);
  }

  classOf(name: string): HostedAgentClass {
    return this.#host.registry.get(name);
  }

  abort(path: AgentPath, reason?: unknown): void {
    if (agentId(path) === this.#id) return this.endLife(reason);
    void this.#host.links.of(path).perdureAbort(errorText(reason));
  }

  async remove(path: AgentPath): Promise<void> {
    if (agentId(path) === this.#id) return this.removeSelf();
    received(await this.#host.links.of(path).perdureRemove());
  }

  addressOf(path: AgentPath): string {
    return buildAgentPath(path, { prefix: this.#host.prefix });
  }

  created(path: AgentPath): Promise<void> | undefined {
    const parent = this.#parent;
    const { kv } = this.#ctx.storage;
    if (parent === undefined || kv.get(KEY.listed) !== undefined) return undefined;
    const told = this.#host.links.of(parent).perdureChildMade(leafOf(path));
    return told.then(received).then(
      () => kv.put(KEY.listed, true),
      (error: unknown) => this.report(agentId(parent), error, { stage: "child" }),
    );
  }

  makeRoom(): void {}

  lived(): void {}

  hold(): () => void {
    return this.dueClock.hold();
  }

  get #parent(): AgentPath | undefined {
    const [root, ...rest] = this.#path.slice(0, -1);
    return root === undefined ? undefined : [root, ...rest];
  }

  get #isDoomed(): boolean {
    return this.#ctx.storage.kv.get(KEY.doomed) !== undefined;
  }

  #openStorage(): LifeSurroundings["storage"] {
    const { storage } = this.#ctx;
    const lost = () => [...storage.kv.list({ prefix: LOST })].map(([key]) => key.slice(LOST.length));
    return {
      open: (id, listener) => new ObjectStore(id, storage, listener, () => this.#wrote(), this.#host.bucket()),
      remove: () => this.removeSelf(),
      index: {
        settle() {},
        isDoomed: () => this.#isDoomed,
        lost,
        told: (child) => void storage.kv.delete(LOST + child),
      },
    };
  }

  /** An object knows its name only while somebody calls it by it. */
  #wrote(): void {
    if (!this.#isNamed) {
      this.#isNamed = true;
      if (this.#ctx.storage.kv.get(KEY.id) === undefined) this.#ctx.storage.kv.put(KEY.id, this.#id);
    }
    this.dueClock.wrote();
  }

  #kids(): string[] {
    return [...this.#ctx.storage.kv.list({ prefix: CHILD })].map(([key]) => key.slice(CHILD.length));
  }

  #connect(request: Request, { uri, identity, mayOnlyRead }: Passport): Response {
    const { client, server } = socketPair();
    this.#ctx.acceptWebSocket(server);
    const query = parseConnectQuery(new URL(uri).searchParams);
    if (query.transport === "capnweb") server.close(closeCode.unsupportedTransport, "transport not supported");
    else if (this.#resident.connections >= this.#host.maxConnections) {
      server.close(closeCode.tryAgainLater, "too many connections");
    } else {
      const { url, headers } = request;
      const id = query.connectionId ?? newId();
      const whose = { id, uri, mayOnlyRead, ...(identity !== undefined && { identity }) };
      const socket = newSocket(this.#ctx.storage, server, whose);
      this.#sockets.set(server, socket);
      this.#resident.connect(socket, new Request(url, { headers }));
    }
    return upgraded(client, request);
  }

  #adopt(ws: PlatformSocket, socket: HostSocket): void {
    this.#sockets.set(ws, socket);
    this.#resident.adopt(socket);
  }

  async #remove(): Promise<void> {
    const { storage } = this.#ctx;
    const removed = Promise.withResolvers<void>();
    storage.kv.put(KEY.id, this.#id);
    storage.kv.put(KEY.doomed, true);
    this.dueClock.stop();
    this.#resident.erase(new PerdureError("agent_gone", `${this.#id} was deleted.`), removed.promise);
    this.#resident.closeSockets(closeCode.goingAway, "agent deleted");
    try {
      await storage.setAlarm(this.dueClock.now() + REMOVE_AGAIN_MS);
      for (const kid of this.#kids()) received(await this.#host.links.of(parseAgentId(kid)).perdureRemove());
      const parent = this.#parent;
      if (parent !== undefined) received(await this.#host.links.of(parent).perdureChildGone(leafOf(this.#path)));
      const bucket = this.#host.bucket();
      if (bucket !== undefined) await emptyBucket(bucket, this.#id);
      await storage.deleteAlarm();
      await storage.deleteAll();
      this.#isNamed = false;
      this.publish(this.#path, this.#id, "agent:destroyed", {});
    } finally {
      this.dueClock.restart();
      removed.resolve();
    }
  }
}

/** The other half of the handshake, where the platform leaves it to us. */
function answerClose(ws: PlatformSocket, code: number): void {
  try {
    ws.close(sendableCode(code) === code ? code : closeCode.normal);
  } catch {
    // It has closed already.
  }
}

/** The head of a request, as it crosses to another object. */
export function headOf({ url, method, headers }: Request): RequestHead {
  return { url, method, headers: [...headers] };
}
