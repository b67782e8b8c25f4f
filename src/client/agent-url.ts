import { PerdureError } from "../base/error.ts";
import { buildAgentPath } from "../wire/agent-path.ts";
import { kebabCase } from "../wire/kebab.ts";

/** One agent of an address: its class and its name. */
export interface AgentRef {
  readonly agent: string;
  readonly name: string;
}

/** Parameters of the query. `null` and `undefined` are left out. */
export type Query = Readonly<Record<string, string | null | undefined>>;

/** Where an agent is. */
export interface AgentLocation {
  /** The class, as it is called in code (`ChatAgent`) or in URLs (`chat-agent`). */
  readonly agent: string;
  /** Default `default`. Any text will do. */
  readonly name?: string;
  /** `example.com`, `localhost:3000` or `https://example.com`. Default: where the page came from. */
  readonly host?: string;
  /** Default: plain for the machine itself and for private networks, encrypted for all others. */
  readonly protocol?: "ws" | "wss" | "http" | "https";
  /** As given to the host. Default `agents`. */
  readonly prefix?: string;
  /** Children on the way to the agent, outermost first. */
  readonly sub?: readonly AgentRef[];
  /** The whole path, instead of prefix, class and name: the server picks the agent. */
  readonly basePath?: string;
  /** Appended last. Must not begin with a slash. */
  readonly path?: string;
}

/** The name of an agent that was not given one. */
const DEFAULT_NAME = "default";

const PLAIN_HOST =
  /^(localhost|127\.\d+\.\d+\.\d+|\[::1\]|10\.\d+\.\d+\.\d+|192\.168\.\d+\.\d+|172\.(1[6-9]|2\d|3[01])\.\d+\.\d+|\[::ffff:7f00:1\])(:\d+)?$/;

/** The chain of agents to the one addressed, root first, with class names as URLs have them. */
export function agentChain(location: AgentLocation): readonly AgentRef[] {
  const root = { agent: location.agent, name: location.name ?? DEFAULT_NAME };
  return [root, ...(location.sub ?? [])].map(({ agent, name }) => ({ agent: kebabCase(agent), name }));
}

/**
 * The URL of an agent without any query, for requests; a socket has the same with `ws` in place of `http`.
 * @throws PerdureError `bad_config` when there is no host, or the address cannot stand in a URL.
 */
export function agentHttpUrl(location: AgentLocation): string {
  const { host, plain } = readHost(location);
  return `http${plain ? "" : "s"}://${host}${pathOf(location)}`;
}

/** `url` with `query` added to what it has. */
export function withQuery(url: string, query: Query): string {
  const pairs = Object.entries(query).flatMap(([key, value]) =>
    value === null || value === undefined ? [] : [[key, value]],
  );
  if (pairs.length === 0) return url;
  return `${url}${url.includes("?") ? "&" : "?"}${new URLSearchParams(pairs)}`;
}

function pathOf({ agent, name = DEFAULT_NAME, prefix, sub = [], basePath, path = "" }: AgentLocation): string {
  if (path.startsWith("/")) throw new PerdureError("bad_config", "`path` must not begin with a slash.");
  const children = sub.map((step) => ({ className: step.agent, name: step.name }));
  if (basePath === undefined) {
    return buildAgentPath([{ className: agent, name }, ...children], { prefix, leafPath: path });
  }
  const base = basePath.replace(/^\/+|\/+$/g, "");
  const steps = children.map((step) => `/sub/${kebabCase(step.className)}/${encodeURIComponent(step.name)}`);
  return `/${base}${steps.join("")}${path === "" ? "" : `/${path}`}`;
}

function readHost({ host, protocol }: AgentLocation): { host: string; plain: boolean } {
  const page = (globalThis as { location?: { host?: string; protocol?: string } }).location;
  const text = host ?? page?.host ?? "";
  if (text === "") throw new PerdureError("bad_config", "There is no page to take the host from. Set `host`.");
  const [, scheme, bare = ""] = /^(?:(\w+):\/\/)?(.*?)\/*$/.exec(text) ?? [];
  const wanted = protocol ?? scheme ?? (host === undefined ? page?.protocol?.replace(":", "") : undefined);
  const plain = wanted === undefined ? PLAIN_HOST.test(bare) : wanted === "ws" || wanted === "http";
  return { host: bare, plain };
}
