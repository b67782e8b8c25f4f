import { type Dirent, readdirSync, statSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { PerdureError } from "../../base/error.ts";

/** A file that should hold an agent. */
export interface AgentFile {
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
 * The agent files below `root`, parents before their sub-agents, in the order of their names.
 * @throws PerdureError `bad_config` when there is no such directory, nothing in it, two files for one agent, or
 *   sub-agents without a parent.
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
