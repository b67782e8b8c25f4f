// Whoever compiles this file alone, as examples in the docs do, has no list of files with it.
// oxlint-disable-next-line typescript/triple-slash-reference
/// <reference path="./workers.d.ts" />
import { DurableObject, env as bindings } from "cloudflare:workers";
import { PerdureError } from "../../base/error.ts";
import type { AgentEvent, AgentEvents, AgentEventType } from "../../base/event.ts";
import type { Identity } from "../../base/identity.ts";
import { namesOf, refuseUnknown } from "../../base/known-options.ts";
import { backgroundClock } from "../../base/time.ts";
import type { AgentPath, AgentStep, HostedAgentClass, ReadVerdict } from "../../port.ts";
import { type AgentStub, createStub } from "../../stub.ts";
import { prefixPath } from "../../wire/address.ts";
import { agentId, leafOf } from "../../wire/agent-path.ts";
import { closeCode, cutReason, refusalCode } from "../../wire/close-code.ts";
import { closeWords } from "../failure.ts";
import { type Log, logTo } from "../log.ts";
import { asyncContext } from "../node/async-context.ts";
import type { Publish, Reach } from "../reach.ts";
import { type AgentClasses, Registry } from "../registry.ts";
import { type RouteOptions, Router } from "../route.ts";
import { atLeast, routeRules } from "../route-rules.ts";
import { headOf, type ObjectHost, ResidentObject } from "./object.ts";
import { type AgentObject, ObjectLinks, passportOf, received, sent, withPassport } from "./object-links.ts";
import {
  type Bucket,
  type ObjectNamespace,
  type ObjectState,
  type PlatformSocket,
  socketPair,
  upgraded,
} from "./platform.ts";

const DEFAULT_BINDING = "PERDURE";
const DEFAULT_HEARTBEAT_MS = 30_000;
const DEFAULT_CONNECTIONS = 10_000;

/** What {@link createCloudflareHost} needs: the classes, and how requests find their agents. */
export interface CloudflareOptions extends RouteOptions {
  /** Classes that clients can reach, by name or as a list. */
  readonly agents: AgentClasses;
  /** Classes that exist only as children of other agents. */
  readonly subAgents?: AgentClasses;
  /** The name of the binding of the object class. Default `PERDURE`. */
  readonly binding?: string;
  /** The name of the binding of an R2 bucket for files and other large bytes. Default: rows of each agent. Not to be changed later. */
  readonly bucket?: string;
  /** What agents get as `this.env`. Default: the bindings of the Worker. */
  readonly env?: object;
  /** Handed to `onStart` of every agent that this host wakes. */
  readonly props?: object;
  /** How soon an agent that was cut off while it worked is woken, with nobody connected. Default 30 s. */
  readonly heartbeatMs?: number;
  /** Sockets per agent; one more is closed with 1013. Default 10,000. */
  readonly connectionsPerAgent?: number;
  /** Where failures go: a function gets each once, with the error as thrown; `false`: nowhere. Default: the console. */
  readonly log?: Log;
  /** What agents report about themselves. Must be quick; what it throws is dropped. */
  readonly onEvent?: (event: AgentEvent) => void;
}

const optionNames = namesOf<CloudflareOptions>()(
  "agents subAgents binding bucket env props heartbeatMs connectionsPerAgent log onEvent prefix cors origins hosts maxBodyBytes",
  "onBeforeRequest onBeforeConnect",
);

/** Lets an app choose the agent by itself (the clients' `basePath`) instead of by the URL. */
export interface Target {
  readonly agent?: AgentStep;
}

/** Agents as Durable Objects. */
export interface CloudflareHost {
  /** The class of all objects. Export it from the Worker under the name that the binding says. */
  readonly PerdureObject: new (ctx: never, env: never) => object;
  /** Answers a request or an upgrade to an agent; `undefined` for any other path. */
  readonly route: (request: Request, target?: Target) => Promise<Response | undefined>;
  /** The same; 404 for any other path. */
  readonly fetch: (request: Request, target?: Target) => Promise<Response>;
  /** An agent for the Worker's own code: call its methods, and wait for what they return. */
  getAgentByName<C extends HostedAgentClass>(
    cls: C,
    name: string,
    options?: { props?: object },
  ): AgentStub<InstanceType<C>>;
}

/**
 * Runs agents as Durable Objects: one class and one binding for all of them, an object for each agent, children included.
 * @throws PerdureError `bad_config`
 */
export function createCloudflareHost(options: CloudflareOptions): CloudflareHost {
  refuseUnknown(options, optionNames, "createCloudflareHost()");
  const registry = new Registry(options.agents, options.subAgents ?? {});
  const rules = routeRules(options);
  const binding = options.binding ?? DEFAULT_BINDING;
  const links = new ObjectLinks(() => namespaceOf(binding));
  const publish = publishTo(options.onEvent);
  const log = logTo(options.log);
  const host: ObjectHost = {
    registry,
    links,
    context: asyncContext,
    env: options.env ?? bindings,
    props: options.props,
    prefix: prefixPath(options.prefix),
    publish,
    log,
    heartbeatMs: atLeast(1, options.heartbeatMs ?? DEFAULT_HEARTBEAT_MS, "heartbeatMs"),
    bucket: () => (options.bucket === undefined ? undefined : bucketOf(options.bucket)),
    maxBodyBytes: rules.maxBodyBytes,
    maxConnections: atLeast(1, options.connectionsPerAgent ?? DEFAULT_CONNECTIONS, "connectionsPerAgent"),
  };
  const reach: Reach = {
    publish,
    exists: (path) => links.of(path).perdureExists(),
    async admitChild(parent, request, child, identity) {
      const { request: head, ...said } = received(
        await links.of(parent).perdureAdmit(headOf(request), child, identity),
      );
      if (head === undefined) return said;
      const { url, method, headers } = head;
      const body = request.method === method ? new Request(url, request) : new Request(url, { method });
      return { ...said, request: new Request(body, { headers: headers as [string, string][] }) } satisfies ReadVerdict;
    },
    request: (path, request, rest, identity, mayOnlyRead) =>
      links.of(path).fetch(request, withPassport({ rest, uri: request.url, mayOnlyRead, ...known(identity) })),
    failed(path, stage, error) {
      log({ agent: agentId(path), stage, error, timestamp: backgroundClock.now() });
    },
  };
  // A body is counted where it is read: what breaks here is no more than a lost connection there.
  const router = new Router(reach, registry, { ...rules, maxBodyBytes: Number.POSITIVE_INFINITY });

  const connect = async (request: Request, target: Target | undefined): Promise<Response | undefined> => {
    const to = await router.connect(request, target?.agent);
    if (to.kind === "not-ours") return undefined;
    if (to.kind === "agent") {
      const headers = new Headers(to.request.headers);
      headers.set("upgrade", "websocket");
      const { rest, mayOnlyRead } = to;
      const init = { headers, ...withPassport({ rest, uri: request.url, mayOnlyRead, ...known(to.identity) }) };
      return links.of(to.path).fetch(new Request(to.request.url, init), init);
    }
    const { status } = to.response;
    if (status < 400 || status > 499) return to.response;
    // Refused for good by a close code: clients try failed upgrades again.
    const reason = to.reason ?? (await closeWords(to.response));
    const { client, server } = socketPair();
    server.accept();
    server.close(refusalCode(status), cutReason(reason));
    return upgraded(client, request);
  };
  const route: CloudflareHost["route"] = (request, target) =>
    isUpgrade(request) ? connect(request, target) : router.respond(request, target?.agent);

  return {
    PerdureObject: objectClass(host),
    route,
    fetch: async (request, target) => (await route(request, target)) ?? new Response("Not Found", { status: 404 }),
    getAgentByName(cls, name, extra) {
      const path: AgentPath = [{ className: registry.nameOf(cls), name }];
      return createStub(path, (to, method, args) => links.call(to, method, args, extra?.props));
    },
  };
}

function objectClass(host: ObjectHost): CloudflareHost["PerdureObject"] {
  return class PerdureObject extends DurableObject implements AgentObject {
    readonly #object: ResidentObject;

    constructor(ctx: ObjectState, env: unknown) {
      super(ctx, env);
      this.#object = new ResidentObject(host, ctx);
    }

    async fetch(request: Request): Promise<Response> {
      const passport = passportOf(request);
      if (passport !== undefined) return this.#object.fetch(request, passport);
      return new Response("Agents are reached through host.route().", { status: 400 });
    }

    async perdureExists() {
      return this.#object.exists();
    }

    perdureCall(...[method, args, props]: Parameters<AgentObject["perdureCall"]>) {
      return sent(() => this.#object.invoke(method, args, props));
    }

    perdureAdmit(...[head, child, identity]: Parameters<AgentObject["perdureAdmit"]>) {
      return sent(() => this.#object.admit(head, child, identity));
    }

    perdureChildMade(child: AgentStep) {
      return sent(() => this.#object.childMade(child));
    }

    perdureChildGone(child: AgentStep) {
      return sent(() => this.#object.childGone(child));
    }

    async perdureAbort(reason: string) {
      this.#object.endLife(reason);
    }

    perdureRemove() {
      return sent(() => this.#object.removeSelf());
    }

    // No promise: the next frame, which may stop a turn, must not wait for it.
    webSocketMessage(ws: PlatformSocket, data: string | ArrayBuffer): void {
      this.#object.message(ws, data);
    }

    webSocketClose(ws: PlatformSocket, code: number, reason: string, wasClean: boolean): void {
      this.#object.disconnected(ws, code, reason, wasClean);
    }

    webSocketError(ws: PlatformSocket): void {
      this.#object.disconnected(ws, closeCode.abnormal, "", false);
    }

    alarm(): Promise<void> {
      return this.#object.rang();
    }
  } as unknown as CloudflareHost["PerdureObject"];
}

/** @throws PerdureError `bad_config` when the Worker has no such binding */
function namespaceOf(binding: string): ObjectNamespace<AgentObject> {
  const found = bindings[binding] as ObjectNamespace<AgentObject> | undefined;
  if (typeof found === "object" && "idFromName" in found) return found;
  throw new PerdureError(
    "bad_config",
    `The Worker has no binding "${binding}" of an object class. Add it to durable_objects in the wrangler configuration, or name yours with \`binding\`.`,
  );
}

/** @throws PerdureError `bad_config` when the Worker has no such binding */
function bucketOf(binding: string): Bucket {
  const found = bindings[binding] as Bucket | undefined;
  if (typeof found === "object" && "list" in found) return found;
  throw new PerdureError(
    "bad_config",
    `The Worker has no binding "${binding}" of a bucket. Add it to r2_buckets in the wrangler configuration.`,
  );
}

function known(identity: Identity | undefined) {
  return identity === undefined ? {} : { identity };
}

function isUpgrade(request: Request): boolean {
  return request.headers.get("upgrade")?.toLowerCase() === "websocket";
}

function publishTo(onEvent: ((event: AgentEvent) => void) | undefined): Publish {
  return <T extends AgentEventType>(path: AgentPath, id: string, type: T, payload: AgentEvents[T]) => {
    if (onEvent === undefined) return;
    const { className, name } = leafOf(path);
    const event = { type, agent: className, name, id, payload, timestamp: backgroundClock.now() } as AgentEvent;
    try {
      // Who listens is nobody's caller.
      asyncContext.run(undefined, () => onEvent(event));
    } catch {
      // A listener is no part of what it hears of.
    }
  };
}
