import type { AgentPath, AgentStep } from "../port.ts";
import { decodeLeniently, decodeStrictly, nameProblem } from "./agent-name.ts";
import { type FindClass, SUB_SEGMENT } from "./class-table.ts";

/*
 * The URL grammar: /PREFIX/CLASS/NAME[/sub/CLASS/NAME]*[/EXTRA]
 *
 * The public clients put a root name into the URL unencoded, and whatever parses the URL encodes it: `room one` arrives as
 * `room%20one`. We decode it. Clients adopt the name of the identity frame (`client.name`), and `useAgentChat` on an
 * `AgentClient` keys its chat and cache by it; only the decoded name equals what the app asked for, so nothing is renamed,
 * fetched twice or reported as changed, and server code that asks for "room one" meets the same agent. A `%` in a name arrives
 * bare (`100% sure` as `100%%20sure`), hence the lenient decoding. Its price: a root name that itself looks encoded (`a%20b`) is
 * the same agent as `a b`. Names with `/`, `?` or `#` must be encoded by the app (`a%2Fb` is `a/b`).
 *
 * Clients do encode child names, so these are decoded strictly and round-trip.
 */

/** Default first segment of every address. */
export const DEFAULT_PREFIX = "agents";
/** The first segments of every address as one path, percent-encoded. @param prefix as the app wrote it */
export function prefixPath(prefix: string = DEFAULT_PREFIX): string {
  const segments = prefix.split("/").filter((segment) => segment !== "");
  return new URL(segments.join("/"), "http://agent.invalid").pathname;
}

/** The most steps that an address may have, the root included. */
export const MAX_STEPS = 16;

/** One crossing from an agent to its child, in the order in which the gates are asked. */
interface Hop {
  readonly parent: AgentPath;
  readonly child: AgentStep;
  /** What the child sees as its path. */
  readonly rest: string;
}

/** An address that was understood. */
export interface AgentAddress {
  readonly kind: "agent";
  /** Registered class names, decoded names; the last step is the one addressed. */
  readonly path: AgentPath;
  /** What follows the address, still percent-encoded; starts with `/`. */
  readonly rest: string;
  /** Empty for a root agent. */
  readonly hops: readonly Hop[];
}

/** An address that cannot name an agent: answer with `status`, or close with `refusalCode(status)`. */
interface RefusedAddress {
  readonly kind: "refused";
  readonly status: 400;
  /** For logs. Clients get no details. */
  readonly reason: string;
}

/** What a pathname means to the host. */
export type Address =
  | AgentAddress
  | RefusedAddress
  /** Not of the form `/PREFIX/x/y`: the app's own business, a 404 by default. */
  | { readonly kind: "not-ours" }
  /** The right form, but no such class. */
  | { readonly kind: "unknown-class"; readonly status: 400; readonly segment: string };

/** What {@link parseAddress} needs to know of the host. */
export interface AddressOptions {
  /** One or more segments. Default {@link DEFAULT_PREFIX}. */
  readonly prefix?: string;
  /** Classes that may stand at the root. */
  readonly isRootClass: FindClass;
  /** Classes that may be children. */
  readonly isClass: FindClass;
}

/** Reads a `URL.pathname`. Empty segments are ignored. Never throws. */
export function parseAddress(pathname: string, options: AddressOptions): Address {
  const segments = segmentsOf(pathname);
  const prefix = segmentsOf(options.prefix ?? DEFAULT_PREFIX);
  const [classSegment, nameSegment] = segments.slice(prefix.length);
  const matches = prefix.every((part, i) => decodeLeniently(segments[i] ?? "") === decodeLeniently(part));
  if (!matches || classSegment === undefined || nameSegment === undefined) return { kind: "not-ours" };

  const className = options.isRootClass(decodeLeniently(classSegment));
  if (className === undefined) return { kind: "unknown-class", status: 400, segment: classSegment };
  const name = decodeLeniently(nameSegment);
  const problem = nameProblem(name);
  if (problem !== undefined) return refused(problem);
  return followHops({ className, name }, segments.slice(prefix.length + 2), options.isClass);
}

/**
 * Finds the children in the path behind a root that the app chose itself (the clients' `basePath`). Without any, `path` is the
 * root alone and `rest` the whole pathname. Never throws.
 */
export function parseChildAddress(
  root: AgentStep,
  pathname: string,
  isClass: FindClass,
): AgentAddress | RefusedAddress {
  return followHops(root, segmentsOf(pathname), isClass);
}

/** A marker counts only before a known class and name. Segments before the first such one are dropped, as public servers do. */
function followHops(root: AgentStep, segments: readonly string[], isClass: FindClass): AgentAddress | RefusedAddress {
  let path: AgentPath = [root];
  let end = 0;
  const found: { parent: AgentPath; child: AgentStep; end: number }[] = [];
  for (let i = 0; i + 2 < segments.length; i++) {
    if (segments[i] !== SUB_SEGMENT) continue;
    const className = isClass(decodeLeniently(segments[i + 1] ?? ""));
    if (className === undefined) continue;
    const name = decodeStrictly(segments[i + 2] ?? "");
    if (name === undefined) return refused("The name of a child agent is not valid percent-encoding.");
    const problem = nameProblem(name);
    if (problem !== undefined) return refused(problem);
    if (path.length === MAX_STEPS) return refused(`An address must not have more than ${MAX_STEPS} steps.`);
    end = i + 3;
    const child = { className, name };
    found.push({ parent: path, child, end });
    path = [...path, child];
    i += 2;
  }
  const restFrom = (start: number) => `/${segments.slice(start).join("/")}`;
  const hops = found.map((hop) => ({ parent: hop.parent, child: hop.child, rest: restFrom(hop.end) }));
  return { kind: "agent", path, rest: restFrom(end), hops };
}

function segmentsOf(path: string): string[] {
  return path.split("/").filter((segment) => segment !== "");
}

function refused(reason: string): RefusedAddress {
  return { kind: "refused", status: 400, reason };
}
