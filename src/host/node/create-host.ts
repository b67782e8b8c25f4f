import { answerOperator } from "../../admin/door.ts";
import type { AdminHouse } from "../../admin/house.ts";
import { createMask } from "../../admin/mask.ts";
import { backgroundClock, LONGEST_TIMER_MS } from "../../base/time.ts";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { PerdureError } from "../../base/error.ts";
import type { AgentPath, AgentStep, HostedAgentClass } from "../../port.ts";
import { logTo } from "../log.ts";
import { loadNeeds, Registry } from "../registry.ts";
import { Router } from "../route.ts";
import { atLeast, routeRules } from "../route-rules.ts";
import { Residents } from "../residents.ts";
import { type AgentStub, createStub } from "../../stub.ts";
import type { Storage } from "../storage.ts";
import { asyncContext } from "./async-context.ts";
import { runningHouse, tapEvents } from "./admin-house.ts";
import { listenAt } from "./admin-socket.ts";
import { publishTo } from "./publish-events.ts";
import { openDiskStorage } from "./disk-storage.ts";
import {
  checkOptions,
  type HostLimits,
  hostOptionNames,
  type HostOptions,
  resolveEnv,
  resolveLimits,
} from "./options.ts";
import { toListener } from "./to-request.ts";
import { WebSockets } from "./web-sockets.ts";

const DEFAULT_IDLE_MS = 30_000;
const DEFAULT_GRACE_MS = 10_000;

/** Reaches a child of the agent that a stub stands for; makes it if it is new. */
type OpenChild = <C extends HostedAgentClass>(cls: C, name: string) => Promise<AgentStub<InstanceType<C>>>;

const openers = new WeakMap<object, OpenChild>();

/** Lets an app choose the agent by itself (the clients' `basePath`) instead of by the URL. */
export interface Target {
  readonly agent?: AgentStep;
}

/** How a host is doing. */
export interface HostStatus {
  readonly ok: boolean;
  /** Agents in memory. */
  readonly live: number;
  /** Agents that the host keeps anything of: a socket, an alarm. */
  readonly kept: number;
  readonly connections: number;
  /** Of a host whose agents are in a database that others share: what it owns there, and how it reaches it. */
  readonly cluster?: {
    readonly node: string;
    readonly engineMs: number;
    readonly owned: number;
    readonly queueBytes: number;
  };
}

/** Agents in this process, to be mounted into any Node server, as with `app.use(host.handler)`. */
export interface Host {
  /** Answers a request to an agent; 404 for any other path. */
  readonly fetch: (request: Request, target?: Target) => Promise<Response>;
  /** Like {@link Host.fetch}, but `undefined` for a path that is not an agent's. */
  readonly route: (request: Request, target?: Target) => Promise<Response | undefined>;
  /** For `node:http` and Express: answers requests to agents and calls `next` for the others. */
  readonly handler: (request: IncomingMessage, response: ServerResponse, next?: () => void) => void;
  /** For the `upgrade` event of a `node:http` server. @returns whether the path was an agent's. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer, target?: Target) => Promise<boolean>;
  /** An agent for server code: call its methods, and wait for what they return. Wakes it on the first call. */
  getAgentByName<C extends HostedAgentClass>(
    cls: C,
    name: string,
    options?: { props?: object },
  ): AgentStub<InstanceType<C>>;
  /** Ids of agents that have stored something, in pages. */
  listAgents(options?: { after?: string; limit?: number }): string[];
  /** For health checks. */
  status(): HostStatus;
  /**
   * Replaces the classes. Agents in memory whose class changed end their life and go on with the new code; rows, sockets and
   * turns stay, calls under way fail with `agent_gone`. For development: see `watchAgents()`.
   * @throws PerdureError `bad_config` when names clash; then nothing has changed.
   */
  replaceAgents(classes: Pick<HostOptions, "agents" | "subAgents">): void;
  /** Stops: no new work, running work settles or stays resumable, clients are told to come back. */
  stop(): Promise<void>;
}

/**
 * Opens the data, carries on what an earlier process left, and waits for requests. Keeps the process running while something is
 * under way or due (a turn, a retry, a fiber, a schedule), until `stop()`; an idle host does not.
 * @throws PerdureError `directory_locked`, `directory_read_only`, `disk_full`, `bad_config`, `database_corrupt`
 */
export function createHost(options: HostOptions): Host {
  return makeHost(options).host;
}

/** A host, and what it opens to its operators. @throws as {@link createHost} */
export function makeHost(options: HostOptions): { readonly host: Host; readonly house: AdminHouse } {
  checkOptions(options, hostOptionNames, "createHost()");
  const registry = new Registry(options.agents, options.subAgents ?? {});
  const limits = resolveLimits(options.limits);
  const idleMs = atLeast(0, options.idleMs ?? DEFAULT_IDLE_MS, "idleMs");
  const graceMs = atLeast(0, options.graceMs ?? DEFAULT_GRACE_MS, "graceMs");
  const rules = routeRules(options);
  const env = resolveEnv(options.env);
  const clock = options.clock ?? backgroundClock;
  const lockWaitMs = atLeast(0, options.lock?.waitMs ?? 0, "lock.waitMs");
  const storage = openStorage(options, limits, lockWaitMs);
  const holds = newHolds();
  const log = logTo(options.log);
  const tap = tapEvents(publishTo(clock), () => clock.now());
  const residents = new Residents({
    registry,
    storage,
    clock,
    context: asyncContext,
    breathe: () => new Promise((resolve) => setImmediate(resolve)),
    publish: tap.publish,
    env,
    log,
    hold: holds.hold,
    props: options.props,
    prefix: options.prefix,
    idleMs,
    maxLive: limits.agents,
  });
  const router = new Router(residents, registry, rules);
  const sockets = new WebSockets(router, residents, limits);
  const route: Host["route"] = (request, target) => router.respond(request, target?.agent);
  const fetch: Host["fetch"] = async (request, target) =>
    (await route(request, target)) ?? new Response("Not Found", { status: 404 });
  const stubAt = <T extends object>(path: AgentPath, props?: object): AgentStub<T> => {
    const stub = createStub<T>(path, (to, method, args) => residents.call(to, method, args, { props }));
    openers.set(stub, async (cls, name) => {
      await residents.resident(path).use((agent) => agent.invoke("subAgent", [cls, name]), props);
      return stubAt([...path, { className: registry.nameOf(cls), name }]);
    });
    return stub;
  };
  let stopped: Promise<void> | undefined;

  const first = (options.start ?? []).map(([className, name]): AgentPath => {
    // @throws for a class that there is not, before anything runs
    registry.get(className);
    return [{ className, name }];
  });
  residents.start();
  // Behind the app's own start. What cannot be loaded fails the first agent that needs it.
  setImmediate(() => void loadNeeds(options.agents, "agents").catch(() => {}));
  for (const path of first)
    residents
      .resident(path)
      .use(() => Promise.resolve())
      .catch((thrown: unknown) => residents.failed(path, "start", thrown));
  const dir = options.storage === undefined ? options.dir : undefined;
  const house = runningHouse({ residents, registry, storage, tap, dir });
  const mask = createMask();
  const listener =
    dir === undefined
      ? undefined
      : listenAt(
          dir,
          (request) => answerOperator(house, mask, { via: "socket", role: "erase" }, request),
          (error) => log({ agent: "host", stage: "admin", error, timestamp: clock.now() }),
        );
  const host: Host = {
    fetch,
    route,
    handler: mount(route),
    upgrade: (request, socket, head, target) => sockets.upgrade(request, socket, head, target?.agent),
    getAgentByName(cls, name, extra) {
      const path: AgentPath = [{ className: registry.nameOf(cls), name }];
      return stubAt(path, extra?.props);
    },
    listAgents: ({ after = "", limit = 1000 } = {}) => storage.index.list(after, limit),
    replaceAgents: ({ agents, subAgents = {} }) => residents.renew(registry.replace(agents, subAgents)),
    status() {
      const { ok = true, ...more } = storage.health ?? {};
      return { ok: ok && !residents.stopping, ...residents.counts, ...more };
    },
    stop() {
      stopped ??= residents
        .stop(graceMs)
        .then(() => sockets.close())
        .then(() => listener?.close())
        .then(() => storage.close())
        .finally(holds.end);
      return stopped;
    },
  };
  return { host, house };
}

function openStorage(options: HostOptions, limits: HostLimits, lockWaitMs: number): Storage {
  const { storage, dir } = options;
  if (typeof storage === "object") return storage;
  if (storage !== undefined || dir === undefined) {
    throw new PerdureError(
      "bad_config",
      "createHost() needs `dir`, a directory for its data, or `storage: memoryStorage()`.",
    );
  }
  let commits = 0;
  const { onCommit } = options;
  return openDiskStorage(dir, { ...limits, lockWaitMs }, onCommit && ((id) => onCommit(++commits, id)));
}

/** Turns the router into Node middleware. */
function mount(route: Host["route"]): Host["handler"] {
  const nexts = new WeakMap<object, () => void>();
  const listener = toListener(async (request, incoming) => {
    const response = await route(request);
    if (response !== undefined) return response;
    const next = nexts.get(incoming);
    if (next === undefined) return new Response("Not Found", { status: 404 });
    next();
    return RESPONSE_ALREADY_SENT;
  });
  return (incoming, outgoing, next) => {
    if (next !== undefined) nexts.set(incoming, next);
    listener(incoming, outgoing);
  };
}

/**
 * A child of an agent, made if new, for server code; `parent` comes from `host.getAgentByName()` or from here. `onBeforeSubAgent`
 * is not asked. @throws PerdureError `bad_input` when `parent` is no such stub, or for an impossible name; `unknown_agent`
 */
export async function getSubAgentByName<C extends HostedAgentClass>(
  parent: object,
  cls: C,
  name: string,
): Promise<AgentStub<InstanceType<C>>> {
  const open = openers.get(parent);
  if (open !== undefined) return open(cls, name);
  throw new PerdureError(
    "bad_input",
    "getSubAgentByName() needs a stub from host.getAgentByName() as its first argument. Inside an agent, use this.subAgent().",
  );
}

/** Answers a request to an agent of `host`; null for a path that is not an agent's. Sockets come in by `host.upgrade`. */
export async function routeAgentRequest(request: Request, host: Host, target?: Target): Promise<Response | null> {
  return (await host.route(request, target)) ?? null;
}

/** Keeps the process running while somebody holds it. `end` lets go for good. */
function newHolds(): { readonly hold: () => () => void; readonly end: () => void } {
  const timer = setInterval(() => {}, LONGEST_TIMER_MS);
  timer.unref();
  let held = 0;
  return {
    hold: () => {
      let holds = true;
      if (held++ === 0) timer.ref();
      return () => {
        if (!holds) return;
        holds = false;
        if (--held === 0) timer.unref();
      };
    },
    end: () => clearInterval(timer),
  };
}
