import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { namesOf } from "../../base/known-options.ts";
import { type Assets, openAssets } from "./assets.ts";
import { hostGate, type Hosts, isLoopback } from "../host-names.ts";
import { type AgentClasses, loadNeeds } from "../registry.ts";
import { misdirected } from "../route.ts";
import { type OpenedAgents, openAgents } from "./agent-directory-open.ts";
import { type AdminHttp, type AdminOptions, openAdminHttp } from "./admin-http.ts";
import type { ClusterOptions } from "./cluster/open-cluster.ts";
import { type Host, makeHost } from "./create-host.ts";
import { checkOptions, type HostOptions, hostOptionNames } from "./options.ts";
import type { Storage } from "../storage.ts";
import { toListener } from "./to-request.ts";

const DEFAULT_PORT = 8787;
/** Idle time before a connection is closed. Longer than proxies' and clients' (mostly a minute), or a request could be lost. */
const KEEP_ALIVE_MS = 75_000;

/** Names of this machine are let in anyway; beside them only what code has made, for it came over no network. */
const ofThisMachine: Hosts = (_name, request) => !request.headers.has("host");

/** What {@link serve} adds to the options of a host. */
export interface ServeOptions extends Omit<HostOptions, "agents"> {
  /** Classes that clients can reach, by name or as a list; or a directory (a path, or a `file:` URL): see `findAgents()`. */
  readonly agents: AgentClasses | string | URL;
  /** Reload agent files that change: see `watchAgents()`. Default: when NODE_ENV is `development`; never in `production`. */
  readonly watch?: boolean;
  /** Default 8787; 0 takes any free port. */
  readonly port?: number;
  /** Default `127.0.0.1`. */
  readonly hostname?: string;
  /** Path of the health check. Default `/health`. */
  readonly healthPath?: string;
  /** Answers requests that are not for an agent. Undefined: not mine, so {@link ServeOptions.assets} is asked, else 404. */
  readonly fetch?: (request: Request) => Response | undefined | Promise<Response | undefined>;
  /** A directory of built files, for what neither an agent nor `fetch` answered. Pages without a file get its `index.html`. */
  readonly assets?: string;
  /** Lets operators in over HTTP, at `/_perdure/`, with a token. Default: only by the socket in `dir`. */
  readonly admin?: AdminOptions;
  /** Keeps the agents in PostgreSQL instead of in `dir`, which is a cache then and may be lost. Needs the package `pg`. */
  readonly cluster?: ClusterOptions;
  /** Whether SIGTERM and SIGINT stop the host in order and then end the process. Default true. */
  readonly signals?: boolean;
}

const ownOptionNames = namesOf<Omit<ServeOptions, keyof HostOptions>>()(
  "watch port hostname healthPath fetch assets admin cluster signals",
);

/** A host with a server of its own. */
export interface ServedHost extends Host {
  readonly url: string;
  readonly port: number;
  readonly server: Server;
}

/**
 * Starts a host and an HTTP server for it. Resolves when it listens. @throws PerdureError as {@link createHost}, and `bad_config`
 * for a bad `assets` or `agents` directory, or when what its agents need is missing; the server's error when the port is taken.
 */
export async function serve(options: ServeOptions): Promise<ServedHost> {
  checkOptions(options, { ...hostOptionNames, ...ownOptionNames }, "serve()");
  const assets = options.assets === undefined ? undefined : openAssets(options.assets);
  const agents = await openAgents(options);
  const hostname = options.hostname ?? "127.0.0.1";
  const hosts = options.hosts ?? (isLoopback(bracketed(hostname)) ? ofThisMachine : "any");
  const place = await placed(options, agents);
  const { host, admin } = createFor(agents, { ...options, ...place, hosts }, () => place.storage?.close());
  const server = createServer(toListener(answers(host, { ...options, hosts }, assets, admin)));
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.on("upgrade", (request, socket, head) => {
    host.upgrade(request, socket, head).then(
      (ours) => {
        if (!ours) socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
      },
      () => socket.destroy(),
    );
  });
  try {
    await listen(server, options.port ?? DEFAULT_PORT, hostname);
    // Here, not on the way to the port: it takes a while, and may fail.
    await loadNeeds(agents.classes.agents, "agents");
  } catch (thrown) {
    agents.close();
    await host.stop();
    server.close();
    throw thrown;
  }
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    forgetSignals?.();
    agents.close();
    // First: until the work is done the port answers, with 503, so that whoever asks hears that this host stops.
    await host.stop();
    server.close();
    server.closeAllConnections();
  };
  const forgetSignals = (options.signals ?? true) ? stopOnSignals(stop) : undefined;
  return { ...host, stop, server, port, url: `http://${bracketed(hostname)}:${port}` };
}

/** As it stands in URLs. */
function bracketed(hostname: string): string {
  return hostname.includes(":") ? `[${hostname}]` : hostname;
}

/** Where the agents are kept, if not in `dir`. What a cluster needs is loaded by whoever enters one. */
async function placed(
  options: ServeOptions,
  agents: OpenedAgents,
): Promise<{ readonly storage?: Storage; readonly dir?: undefined }> {
  const { cluster } = options;
  if (cluster === undefined) return {};
  try {
    const { openCluster } = await import("./cluster/open-cluster.ts");
    return { storage: await openCluster(cluster, { ...options, ...agents.classes }), dir: undefined };
  } catch (thrown) {
    agents.close();
    throw thrown;
  }
}

function createFor(
  agents: OpenedAgents,
  options: Omit<ServeOptions, "dir"> & { readonly dir?: string | undefined },
  failed: () => Promise<void> | undefined,
): { host: Host; admin: AdminHttp | undefined } {
  try {
    const given = Object.entries(options).filter(([name]) => Object.hasOwn(hostOptionNames, name));
    // Before anything is opened: what is wrong with it must not leave a host behind.
    const open = options.admin && openAdminHttp(options.admin);
    const { host, house } = makeHost({ ...(Object.fromEntries(given) as typeof options), ...agents.classes });
    agents.follow(host);
    return { host, admin: open?.(house) };
  } catch (thrown) {
    agents.close();
    void failed()?.catch(() => {});
    throw thrown;
  }
}

function answers(
  host: Host,
  options: ServeOptions,
  assets: Assets | undefined,
  admin: AdminHttp | undefined,
): (request: Request) => Promise<Response> {
  const healthPath = options.healthPath ?? "/health";
  const answersTo = hostGate(options.hosts);
  return async (request) => {
    if (new URL(request.url).pathname === healthPath) {
      const status = host.status();
      return Response.json(status, { status: status.ok ? 200 : 503 });
    }
    const answer = (await admin?.(request)) ?? (await host.route(request));
    if (answer !== undefined) return answer;
    if (!answersTo(request)) return new Response(misdirected(request), { status: 421 });
    return (await options.fetch?.(request)) ?? (await assets?.(request)) ?? new Response("Not Found", { status: 404 });
  };
}

function listen(server: Server, port: number, hostname: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") {
        error.message = `Port ${port} of ${hostname} is in use by another program. Stop that one, or give serve() another \`port\`; 0 takes any free one.`;
      }
      reject(error);
    };
    server.once("error", failed);
    server.listen(port, hostname, () => {
      server.off("error", failed);
      resolve();
    });
  });
}

/** A second signal ends the process at once: everything stored is safe at any moment. */
function stopOnSignals(stop: () => Promise<void>): () => void {
  let stopping = false;
  const onSignal = () => {
    if (stopping) process.exit(1);
    stopping = true;
    stop().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  return () => {
    if (stopping) return;
    process.off("SIGTERM", onSignal);
    process.off("SIGINT", onSignal);
  };
}
