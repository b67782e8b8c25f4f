import { realpathSync } from "node:fs";
import { errorText, PerdureError } from "../../base/error.ts";
import { namesOf, refuseUnknown } from "../../base/known-options.ts";
import type { HostedAgentClass } from "../../port.ts";
import { type FileChange, FileChanges } from "./agent-directory-changes.ts";
import { loadAgentFile } from "./agent-directory-load.ts";
import { ModuleGraph, withoutVersions } from "./agent-directory-modules.ts";
import { type FoundAgents, type LoadedFile, nameAgents } from "./agent-directory-names.ts";
import { directoryPath, scanAgents, shownPath } from "./agent-directory-scan.ts";

/** How {@link watchAgents} tells what it sees. */
export interface WatchOptions {
  /** Other classes than before: hand them to `host.replaceAgents()`. What it throws is printed, and the old ones stay. */
  readonly onChange: (found: FoundAgents) => void;
  /** Prints one message for the developer. Default: to standard error. Must not throw. */
  readonly print?: (message: string) => void;
}

const watchOptionsNames = namesOf<WatchOptions>()("onChange print");

/** The agents of a directory that is being watched, as they were found first. */
export interface WatchedAgents extends FoundAgents {
  /** Stops watching. */
  close(): void;
}

/**
 * As {@link findAgents}, and loads the files again when they change, with everything below the directory that imports
 * them. For development: what was loaded before stays in memory. A file that cannot be loaded keeps the class it had, and
 * a message says why. Needs Node 22.15 or later, and ES modules; files outside the directory keep their old code.
 * @throws PerdureError `bad_config` as {@link findAgents}, for what is there at first.
 */
export async function watchAgents(dir: string | URL, options: WatchOptions): Promise<WatchedAgents> {
  refuseUnknown(options, watchOptionsNames, "watchAgents()");
  const root = directoryPath(dir);
  // Says what is wrong with the directory before anything looks into it.
  scanAgents(root);
  const watch = new AgentWatch(realpathSync(root), options);
  try {
    return { ...(await watch.open()), close: () => watch.close() };
  } catch (thrown) {
    watch.close();
    throw thrown;
  }
}

/** Files that can be modules. Others (a prompt, say) only count if something imports them. */
const CODE = /\.[cm]?[jt]sx?$/;
const TEST = /\.test\.[^.]+$/;

class AgentWatch {
  readonly #root: string;
  readonly #onChange: WatchOptions["onChange"];
  readonly #print: (message: string) => void;
  readonly #modules: ModuleGraph;
  readonly #changes: FileChanges;
  /** The newest class of each file that ever loaded. */
  readonly #classes = new Map<string, HostedAgentClass>();
  /** What was said about each file, so that it is said once. */
  readonly #said = new Map<string, string>();
  #found: FoundAgents = { agents: {}, subAgents: {}, manifest: [] };

  constructor(root: string, { onChange, print = (message) => console.error(message) }: WatchOptions) {
    this.#root = root;
    this.#onChange = onChange;
    this.#print = print;
    this.#modules = new ModuleGraph(root);
    // Before anything is loaded: what is written meanwhile must count as a change.
    this.#changes = new FileChanges(
      root,
      (changes) => this.#reload(changes),
      (error) => this.#print(`Changes in ${shownPath(root)} may go unnoticed: ${errorText(error)}`),
    );
  }

  async open(): Promise<FoundAgents> {
    const files: LoadedFile[] = [];
    for (const one of scanAgents(this.#root)) {
      const cls = await loadAgentFile(one.file);
      this.#classes.set(one.file, cls);
      files.push({ ...one, cls });
    }
    this.#found = nameAgents(files);
    this.#changes.start();
    return this.#found;
  }

  close(): void {
    this.#changes.close();
    this.#modules.close();
  }

  async #reload(changes: readonly FileChange[]): Promise<void> {
    this.#touch(changes);
    try {
      const found = nameAgents(await this.#loadAll());
      const names = difference(this.#found, found);
      if (names.length === 0) return;
      this.#onChange(found);
      this.#found = found;
      this.#said.delete(this.#root);
      this.#print(`Agents reloaded: ${names.join(", ")}.`);
    } catch (thrown) {
      this.#say(this.#root, `The agents stay as they were. ${explain(thrown)}`);
    }
  }

  #touch(changes: readonly FileChange[]): void {
    const known = changes.filter(({ file }) => this.#modules.knows(file));
    // A module of old that nobody was seen to import was loaded before anyone looked. So may be what imports it.
    const unseen = changes.some(
      ({ file, kind }) => kind !== "added" && CODE.test(file) && !TEST.test(file) && !this.#modules.knows(file),
    );
    if (unseen) this.#modules.touchAll();
    else this.#modules.touch(known.map(({ file }) => file));
  }

  async #loadAll(): Promise<LoadedFile[]> {
    const loaded: LoadedFile[] = [];
    const files = scanAgents(this.#root);
    for (const file of this.#classes.keys()) if (!files.some((one) => one.file === file)) this.#classes.delete(file);
    for (const one of files) {
      const cls = await this.#load(one.file);
      if (cls !== undefined) loaded.push({ ...one, cls });
    }
    return loaded;
  }

  async #load(file: string): Promise<HostedAgentClass | undefined> {
    try {
      const cls = await loadAgentFile(file);
      this.#classes.set(file, cls);
      this.#said.delete(file);
      return cls;
    } catch (thrown) {
      const old = this.#classes.get(file);
      this.#say(
        file,
        `${explain(thrown)}${old === undefined ? "" : `\n${old.name || "It"} goes on with its old code.`}`,
      );
      return old;
    }
  }

  #say(about: string, message: string): void {
    if (this.#said.get(about) === message) return;
    this.#said.set(about, message);
    this.#print(message);
  }
}

/** Which agents were added, removed, or have another class. */
function difference(before: FoundAgents, after: FoundAgents): string[] {
  const classes = ({ agents, subAgents }: FoundAgents) => new Map(Object.entries({ ...subAgents, ...agents }));
  const [old, now] = [classes(before), classes(after)];
  const places = ({ manifest }: FoundAgents, name: string) =>
    JSON.stringify(manifest.filter((one) => one.name === name));
  const names = new Set([...old.keys(), ...now.keys()]);
  return [...names].filter((name) => old.get(name) !== now.get(name) || places(before, name) !== places(after, name));
}

/** What went wrong, and for a mistake in the code also the line that it is in. */
function explain(thrown: unknown): string {
  const cause: unknown = PerdureError.is(thrown) ? thrown.cause : undefined;
  if (!(cause instanceof Error) || cause.stack === undefined) return errorText(thrown);
  // In front of the calls stands the place of a mistake in the syntax; else the first call is the place.
  const [head = "", first] = cause.stack.split(/\n\s+at /);
  const place = cause instanceof SyntaxError || first === undefined ? head : `${head}\n    at ${first}`;
  return withoutVersions(`${errorText(thrown)}\n${place}`);
}
