import { type Dirent, readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { errorText, PerdureError } from "../../base/error.ts";
import { type HostedAgentClass, isAgentClass } from "../../port.ts";
import { classTable } from "../../wire/class-table.ts";
import { kebabCase } from "../../wire/kebab.ts";

/**
 * Loads the agents of a directory: `agents/*.ts` and `agents/<name>/agent.ts`, and below `agents/<name>/agents/` the sub-agents
 * of that one, to any depth. For servers of your own: hand `agents` and `subAgents` to `createHost()`.
 * @param dir relative to the working directory, or a `file:` URL.
 * @throws PerdureError `bad_config`, naming the files: no directory, nothing in it, a file that fails to load or has no agent, or
 * names that clash.
 */
export async function findAgents(dir: string | URL): Promise<FoundAgents> {
  const files: LoadedFile[] = [];
  // One after the other: which of several mistakes is reported must not depend on luck.
  for (const one of scanAgents(directoryPath(dir))) files.push({ ...one, cls: await loadAgentFile(one.file) });
  return nameAgents(files);
}

/** A file that should hold an agent. */
interface AgentFile {
  /** The absolute path. */
  readonly file: string;
  /** What the file, or its folder, is called: where a class without a name gets one from. */
  readonly stem: string;
  /** The agent that this one is a sub-agent of. */
  readonly parent: AgentFile | undefined;
}

const SUB_FOLDER = "agents";
const AGENT_FILE = /^(?<stem>.+)\.(?:ts|js|mts|mjs)$/;
const NOT_AN_AGENT = /^[._]|\.test\.|\.d\.m?ts$|^node_modules$/;

/** The absolute path of a directory that was given as an option. @throws PerdureError `bad_config` */
export function directoryPath(dir: string | URL): string {
  if (typeof dir === "string") return resolve(dir);
  if (dir.protocol === "file:") return resolve(fileURLToPath(dir));
  throw new PerdureError("bad_config", `The agents directory must be a file: URL, not ${dir.href}.`);
}

/** A path as people read it in messages: from the working directory, if it lies below it. */
export function shownPath(path: string): string {
  const short = relative(process.cwd(), path);
  return short === "" || short.startsWith("..") ? path : short;
}

/**
 * The agent files below `root`, parents before sub-agents, by name. @throws PerdureError `bad_config` when there is no such
 * directory, nothing in it, two files for one agent, or sub-agents without a parent.
 */
export function scanAgents(root: string): AgentFile[] {
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new PerdureError(
      "bad_config",
      `There is no agents directory ${shownPath(root)}. Create it with a file for each agent, or give \`agents\` another path; paths start at ${process.cwd()}.`,
    );
  }
  const found = scanFolder(root, undefined);
  if (found.length > 0) return found;
  throw new PerdureError(
    "bad_config",
    `The agents directory ${shownPath(root)} has no agents. Add a file that exports one, such as ${shownPath(join(root, "assistant.ts"))}. Names that start with _ or . and tests do not count.`,
  );
}

function scanFolder(folder: string, parent: AgentFile | undefined): AgentFile[] {
  const entries = entriesOf(folder);
  const files = new Map<string, string>();
  for (const { name } of entries.filter((entry) => !entry.isFolder)) {
    const stem = AGENT_FILE.exec(name)?.groups?.["stem"];
    if (stem !== undefined) addOnce(files, stem, join(folder, name));
  }
  const folders = entries.filter((entry) => entry.isFolder);
  for (const { name } of folders) {
    const own = mainFile(join(folder, name));
    if (own !== undefined) addOnce(files, name, own);
  }
  const found = [...files].map(([stem, file]): AgentFile => ({ file, stem, parent }));
  found.sort((a, b) => (a.stem < b.stem ? -1 : 1));
  const below: AgentFile[] = [];
  for (const { name } of folders) {
    const place = join(folder, name, SUB_FOLDER);
    if (statSync(place, { throwIfNoEntry: false })?.isDirectory() !== true) continue;
    const owner = found.find(({ stem }) => stem === name);
    const children = scanFolder(place, owner);
    if (owner === undefined && children.length > 0) {
      throw new PerdureError(
        "bad_config",
        `${shownPath(place)} has sub-agents, but their parent is missing. Add ${shownPath(join(folder, name, "agent.ts"))}, or rename the folder to _${name} if these are no agents.`,
      );
    }
    below.push(...children);
  }
  return [...found, ...below];
}

/** `agent.ts` or `index.ts` of an agent's own folder. */
function mainFile(folder: string): string | undefined {
  const files = new Map<string, string>();
  for (const { name, isFolder } of entriesOf(folder)) {
    const stem = isFolder ? undefined : AGENT_FILE.exec(name)?.groups?.["stem"];
    if (stem === "agent" || stem === "index") addOnce(files, "", join(folder, name));
  }
  return files.get("");
}

function addOnce(files: Map<string, string>, stem: string, file: string): void {
  const taken = files.get(stem);
  if (taken !== undefined) {
    throw new PerdureError(
      "bad_config",
      `${shownPath(taken)} and ${shownPath(file)} are two files for the same agent. Keep one of them; a helper's name may start with _.`,
    );
  }
  files.set(stem, file);
}

function entriesOf(folder: string): { name: string; isFolder: boolean }[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !NOT_AN_AGENT.test(name))
    .map((entry) => ({ name: entry.name, isFolder: isFolder(folder, entry) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function isFolder(folder: string, entry: Dirent): boolean {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  return statSync(join(folder, entry.name), { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/**
 * Imports a file and finds its agent: the default export, or the one exported agent class. @throws PerdureError `bad_config` when
 * the import fails (see `cause`), or when there is no agent or no single one.
 */
export async function loadAgentFile(file: string): Promise<HostedAgentClass> {
  let exported: Readonly<Record<string, unknown>>;
  try {
    exported = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as typeof exported;
  } catch (thrown) {
    const words = `${shownPath(file)} could not be loaded: ${errorText(thrown)}${decoratorHint(file, thrown)}`;
    throw new PerdureError("bad_config", words, { cause: thrown });
  }
  if (isAgentClass(exported["default"])) return exported["default"];
  const candidates = new Map<HostedAgentClass, string>();
  for (const [name, value] of Object.entries(exported)) if (isAgentClass(value)) candidates.set(value, name);
  const [only] = candidates.keys();
  if (only !== undefined && candidates.size === 1) return only;
  if (only === undefined) {
    throw new PerdureError(
      "bad_config",
      `${shownPath(file)} exports no agent. Export a class that extends Agent, or the result of agent({ … }). If it is a helper, start its name with _.`,
    );
  }
  throw new PerdureError(
    "bad_config",
    `${shownPath(file)} exports several agents: ${[...candidates.values()].join(", ")}. Make one the default export, or give each its own file.`,
  );
}

/** Node only takes types away, and calls a decorator a wrong character. */
function decoratorHint(file: string, thrown: unknown): string {
  if (!(thrown instanceof SyntaxError) || !/^\s*@callable\b/m.test(readFileSync(file, "utf8"))) return "";
  return '. Node does not run decorators: compile the file, or write static { callable(this, "name"); } instead of @callable().';
}

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

/** Gives every class its name. @throws PerdureError `bad_config` for a name that cannot stand in a URL, or that two files give */
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
