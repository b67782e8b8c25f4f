import { PerdureError } from "../base/error.ts";
import type { AgentPath, AgentStep } from "../port.ts";
import { DEFAULT_PREFIX, MAX_STEPS } from "./address.ts";
import { decodeStrictly, nameProblem } from "./agent-name.ts";
import { SUB_SEGMENT } from "./class-table.ts";
import { kebabCase } from "./kebab.ts";

/** How {@link buildAgentPath} ends and begins. */
export interface AgentPathOptions {
  /** As given to the host. Default `agents`. */
  readonly prefix?: string;
  /** Appended after the address; already percent-encoded, with or without a leading `/`. */
  readonly leafPath?: string;
}

/**
 * The pathname of an agent, for HTTP and WebSocket alike; `parseAddress` reads it back to the same path.
 * @throws PerdureError `bad_input` when a step, the prefix or the leaf path cannot stand in a URL.
 */
export function buildAgentPath(path: AgentPath, options: AgentPathOptions = {}): string {
  checkPath(path);
  const prefix = stablePath(options.prefix ?? DEFAULT_PREFIX, "prefix");
  const leaf = stablePath(options.leafPath ?? "", "leafPath");
  const leafSegments = leaf.split("/").slice(1);
  if (leafSegments.some((segment, i) => segment === SUB_SEGMENT && i + 2 < leafSegments.length)) {
    throw new PerdureError("bad_input", `leafPath must not contain /${SUB_SEGMENT}/x/y: it would name a child agent.`);
  }
  return prefix + path.map(stepPath).join(`/${SUB_SEGMENT}`) + leaf;
}

/**
 * The URL of an agent at an origin: what {@link buildAgentPath} says, behind scheme, host and port of `origin`.
 * @throws PerdureError `bad_input` as it, and when `origin` is no URL.
 */
export function buildAgentUrl(origin: string | URL, path: AgentPath, options?: AgentPathOptions): URL {
  if (!URL.canParse(origin)) throw new PerdureError("bad_input", `${JSON.stringify(String(origin))} is not a URL.`);
  return new URL(buildAgentPath(path, options), origin);
}

/**
 * A whole address as one string: `Class/name/ChildClass/name`, percent-encoded; unique per path. Contains only
 * `A-Z a-z 0-9 - _ . ~ % /`, and no segment starts with a dot, so it is safe as a key and as a relative file path, apart from
 * length and letter case.
 * @throws PerdureError `bad_input` when a step cannot name an agent.
 */
export function agentId(path: AgentPath): string {
  checkPath(path);
  return path.map((step) => `${idSegment(step.className)}/${idSegment(step.name)}`).join("/");
}

/**
 * The path that {@link agentId} made `id` from.
 * @throws PerdureError `bad_input` when it made no such id.
 */
export function parseAgentId(id: string): AgentPath {
  const parts = id.split("/").map(decodeStrictly);
  const steps: AgentStep[] = [];
  for (let i = 0; i < parts.length; i += 2) {
    const [className, name] = [parts[i], parts[i + 1]];
    if (className === undefined || name === undefined) throw badId(id);
    steps.push({ className, name });
  }
  const [root, ...children] = steps;
  if (root === undefined) throw badId(id);
  const path: AgentPath = [root, ...children];
  if (agentId(path) !== id) throw badId(id);
  return path;
}

function badId(id: string): PerdureError {
  return new PerdureError(
    "bad_input",
    `${JSON.stringify(id.slice(0, 100))} is not an agent id. Use one made by agentId().`,
  );
}

/** Throws `bad_input` unless every step can name an agent. */
function checkPath(path: readonly AgentStep[]): void {
  if (path.length === 0) throw new PerdureError("bad_input", "An agent path must have at least one step.");
  if (path.length > MAX_STEPS) {
    throw new PerdureError("bad_input", `An agent path must not have more than ${MAX_STEPS} steps.`);
  }
  for (const step of path) {
    const problem = nameProblem(step.name) ?? nameProblem(step.className);
    if (problem !== undefined) throw new PerdureError("bad_input", problem);
  }
}

function stepPath(step: AgentStep): string {
  const segment = kebabCase(step.className);
  if (segment === SUB_SEGMENT || nameProblem(segment) !== undefined) {
    throw new PerdureError("bad_input", `The class name ${JSON.stringify(step.className)} cannot be used in a URL.`);
  }
  return `/${encodeURIComponent(segment)}/${encodeURIComponent(step.name)}`;
}

/** `encodeURIComponent` leaves `!'()*` and dots alone; file systems and globs do not. */
function idSegment(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
    .replace(/^\./, "%2E");
}

/** `text` with one leading slash and none at the end; `""` stays `""`. A URL parser must not change it. */
function stablePath(text: string, what: string): string {
  const trimmed = text.replace(/^\//, "").replace(/\/$/, "");
  if (trimmed === "") return "";
  const path = `/${trimmed}`;
  if (path.includes("//") || !isStable(path)) {
    throw new PerdureError("bad_input", `${what} ${JSON.stringify(text)} is not a plain, percent-encoded URL path.`);
  }
  return path;
}

function isStable(path: string): boolean {
  const url = new URL(path, "http://agent.invalid");
  return url.pathname === path && url.search === "" && url.hash === "";
}

/** The last step of an address: the agent itself. */
export function leafOf(path: AgentPath): AgentStep {
  return path[path.length - 1] ?? path[0];
}
