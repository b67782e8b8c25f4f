import { errorText, PerdureError } from "../base/error.ts";
import type { AgentHost } from "../port.ts";
import { readLongBody } from "../wire/chat-text.ts";
import type { Act, Ask, RequestCaller } from "./authorize.ts";

/** A request that a route was found for. */
export interface RouteRequest {
  readonly request: Request;
  readonly caller: RequestCaller;
  /** The path behind the agent's address. */
  readonly rest: string;
  /** What stands in the place of `{name}` in the shape of the route. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The body as JSON, read once. @throws PerdureError `bad_input`, `too_large` */
  readonly body: () => Promise<unknown>;
  /** For what turns out to be asked for besides. @throws PerdureError when it may not be done */
  readonly insist: (ask: Ask) => Promise<void>;
}

/** A way in by HTTP: a line of a table, so that there is none that nobody decides about. */
export interface Route<Door = unknown> {
  readonly method: string;
  /** The path behind the agent's address, or the end of it: `chat/{turn}/stream`. */
  readonly shape: string;
  /** What can be asked for here. The first one, unless {@link Route.ask} says which. */
  readonly acts: readonly [Act, ...Act[]];
  /** `bytes`: the body is left to {@link Route.ask}, which reads it as it came. Default: JSON, read before anybody decides. */
  readonly reads?: "bytes";
  /** Instead of the shape: whether a request is meant for this. */
  readonly matches?: (door: Door, request: Request, rest: string) => boolean;
  /** What is asked for. Changes nothing. */
  readonly ask?: (asked: RouteRequest, door: Door) => Ask | Promise<Ask>;
  /** Called only when it may be done. What it throws of ours is answered with its code. */
  readonly answer: (asked: RouteRequest, door: Door) => Response | Promise<Response>;
}

/** The routes of a part, with what they open. */
export interface RouteTable {
  readonly lines: readonly Route[];
  readonly door: unknown;
}

/** Puts routes and what they open together. */
export function routeTable<Door>(lines: readonly Route<Door>[], door: Door): RouteTable {
  return { lines: lines as readonly Route[], door };
}

/** The way in that a request has found, or the methods that it could have used there. */
type FoundRoute =
  | { readonly route: Route; readonly door: unknown; readonly params: Readonly<Record<string, string>> }
  | { readonly allow: readonly string[] };

/** Finds the route of a request; undefined if there is none. @param rest the path behind the agent's address. */
export function findRoute({ lines, door }: RouteTable, request: Request, rest: string): FoundRoute | undefined {
  const allow: string[] = [];
  for (const route of lines) {
    if (route.matches !== undefined) {
      if (route.method === request.method && route.matches(door, request, rest)) return { route, door, params: {} };
      continue;
    }
    const found = patternOf(route.shape).exec(rest);
    if (found === null) continue;
    if (route.method === request.method) return { route, door, params: decoded(found.groups ?? {}) };
    allow.push(route.method);
  }
  return allow.length === 0 ? undefined : { allow };
}

/** Answers a request that has found its way in, if it may. @param insist throws when something may not be done. */
export async function answerRoute(
  host: AgentHost,
  found: FoundRoute,
  caller: RequestCaller,
  rest: string,
  insist: (ask: Ask) => Promise<void>,
): Promise<Response> {
  if ("allow" in found)
    return new Response("Method Not Allowed", { status: 405, headers: { allow: found.allow.join(", ") } });
  const { route, door, params } = found;
  const { request } = caller;
  let body: Promise<unknown> | undefined;
  const asked: RouteRequest = {
    ...{ request, caller, rest, params, insist },
    query: new URL(request.url).searchParams,
    body: () => (body ??= readBody(host, request)),
  };
  // First, however slowly it comes: what is decided must hold when it is done. One that is wrong is told of further down.
  if (route.reads !== "bytes" && (route.method === "POST" || route.method === "PATCH"))
    await asked.body().catch(() => undefined);
  try {
    await insist((await route.ask?.(asked, door)) ?? { act: route.acts[0] });
    return await route.answer(asked, door);
  } catch (thrown) {
    return refuse(thrown);
  }
}

/** A long transcript in it is read in pieces. */
async function readBody(host: AgentHost, request: Request): Promise<unknown> {
  const read = await readLongBody(await readText(request), () => host.breathe());
  if ("reason" in read) throw new PerdureError(read.code ?? "bad_input", read.reason);
  return read.value;
}

/** Decoded as it comes: all at once, a long one would hold up everybody. */
async function readText(request: Request): Promise<string> {
  const words = new TextDecoder();
  const reader = request.body?.getReader();
  let text = "";
  while (reader !== undefined) {
    const { value, done } = await reader.read();
    if (done) break;
    text += words.decode(value, { stream: true });
  }
  return text + words.decode();
}

/** The answer to a request that is wrong in itself; what is anything else is thrown on. */
export function refuse(thrown: unknown): Response {
  const status = PerdureError.is(thrown) ? STATUS[thrown.code] : undefined;
  if (status === undefined || !PerdureError.is(thrown)) throw thrown;
  return Response.json({ error: { code: thrown.code, message: errorText(thrown) } }, { status });
}

const STATUS: Partial<Record<PerdureError["code"], number>> = {
  bad_input: 400,
  not_allowed: 403,
  read_only: 403,
  not_found: 404,
  conflict: 409,
  bad_state: 409,
  too_large: 413,
};

/** What may stand in the place of a name, where that is not everything. */
const NAMES: Readonly<Record<string, string>> = { hash: "[0-9a-f]{64}" };
const patterns = new Map<string, RegExp>();

function patternOf(shape: string): RegExp {
  let pattern = patterns.get(shape);
  if (pattern === undefined) {
    const text = shape.replace(/\{(\w+)\}/g, (_, name: string) => `(?<${name}>${NAMES[name] ?? "[^/]+"})`);
    patterns.set(shape, (pattern = new RegExp(`(?:^|/)${text}/?$`)));
  }
  return pattern;
}

/** As the segments were meant. */
function decoded(groups: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(groups).map(([name, segment]) => [name, decodeSegment(segment)]));
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
