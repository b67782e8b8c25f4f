import { errorText, PerdureError } from "../../base/error.ts";
import type { HostedAgentClass } from "../../port.ts";
import { classTable } from "../../wire/class-table.ts";
import { kebabCase } from "../../wire/kebab.ts";
import { type AgentFile, shownPath } from "./agent-directory-scan.ts";

/** One agent of a directory: what it is called and where it is from. */
export interface FoundAgent {
  /** What its class is registered under. */
  readonly name: string;
  /** The name as it stands in URLs: `/agents/<route>/…`, or `…/sub/<route>/…` for a sub-agent. */
  readonly route: string;
  /** The absolute path of its file. */
  readonly file: string;
  /** The name of the agent whose folder it is in; undefined at the top. */
  readonly parent: string | undefined;
}

/** The agents of a directory, as `createHost()` takes them, and a list of what is where. */
export interface FoundAgents {
  /** The classes at the top, by name. */
  readonly agents: Readonly<Record<string, HostedAgentClass>>;
  /** The classes of sub-agents, by name. */
  readonly subAgents: Readonly<Record<string, HostedAgentClass>>;
  /** Parents stand before their sub-agents. */
  readonly manifest: readonly FoundAgent[];
}

/** A file and the class that was found in it. */
export interface LoadedFile extends AgentFile {
  readonly cls: HostedAgentClass;
}

/**
 * Gives every class its name.
 * @throws PerdureError `bad_config` when a name cannot stand in a URL, or two files give the same one.
 */
export function nameAgents(files: readonly LoadedFile[]): FoundAgents {
  const agents: Record<string, HostedAgentClass> = {};
  const subAgents: Record<string, HostedAgentClass> = {};
  const names = new Map<string, string>();
  const parentName = ({ file, stem }: AgentFile) => names.get(file) ?? pascalCase(stem);
  const byRoute = new Map<string, LoadedFile>();
  const manifest = files.map((one): FoundAgent => {
    const name = nameOf(one);
    const route = routeOf(one, name);
    const taken = byRoute.get(route);
    if (taken !== undefined) refuseClash(taken, one, name, route);
    else byRoute.set(route, one);
    names.set(one.file, name);
    const parent = files.find(({ file }) => file === one.parent?.file);
    if (parent !== undefined) declareChild(parent.cls, name);
    (one.parent === undefined ? agents : subAgents)[name] = one.cls;
    return { name, route, file: one.file, parent: one.parent && parentName(one.parent) };
  });
  return { agents, subAgents, manifest };
}

/** A file in an agent's folder says what `static subAgents` says. By name: the class may be loaded again without the other. */
function declareChild(parent: HostedAgentClass, name: string): void {
  const { subAgents = [] } = parent as { readonly subAgents?: readonly unknown[] };
  if (!subAgents.includes(name))
    Object.defineProperty(parent, "subAgents", { value: [...subAgents, name], configurable: true });
}

/** What JavaScript, and Vite in tests, call a class that is exported as the default without a name. */
const NO_NAME = /^(?:default|__vite_ssr_export_default__)?$/;

/** The class's own name, else that of its file. */
function nameOf({ cls, stem }: LoadedFile): string {
  return NO_NAME.test(cls.name) ? pascalCase(stem) : cls.name;
}

/** `support-desk` is `SupportDesk`. */
function pascalCase(stem: string): string {
  return stem.replace(/(?:^|[^\p{L}\p{N}]+)([\p{L}\p{N}]|$)/gu, (_, first: string) => first.toUpperCase());
}

function routeOf({ file }: LoadedFile, name: string): string {
  try {
    classTable([name]);
  } catch (thrown) {
    throw new PerdureError("bad_config", `${shownPath(file)}: ${errorText(thrown)}`, { cause: thrown });
  }
  return kebabCase(name);
}

/** The same class may be a sub-agent in several places. Another meaning of the same name may not. */
function refuseClash(first: LoadedFile, second: LoadedFile, name: string, route: string): void {
  const [a, b] = [shownPath(first.file), shownPath(second.file)];
  if ((first.parent === undefined) !== (second.parent === undefined)) {
    if (first.cls === second.cls) return;
    throw new PerdureError(
      "bad_config",
      `${a} is a top-level agent and ${b} another one's sub-agent, but both are called "${name}" ("${route}" in URLs). Names are shared by all agents of a host: rename one class, or let one file export the other's.`,
    );
  }
  if (first.cls === second.cls && second.parent !== undefined) return;
  throw new PerdureError(
    "bad_config",
    `${a} and ${b} both give the agent "${name}" ("${route}" in URLs). Rename the class of one of them.`,
  );
}
