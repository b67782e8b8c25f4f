import { type BigIntStats, type FSWatcher, readdirSync, realpathSync, statSync, watch } from "node:fs";
import { errorText, PerdureError } from "../../base/error.ts";
import { namesOf, refuseUnknown } from "../../base/known-options.ts";
import type { HostedAgentClass } from "../../port.ts";
import {
  directoryPath,
  type FoundAgents,
  loadAgentFile,
  type LoadedFile,
  nameAgents,
  scanAgents,
  shownPath,
} from "./agent-directory.ts";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";

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
 * As {@link findAgents}, and reloads files that change, with everything below the directory that imports them. For development:
 * old modules stay in memory. A file that fails to load keeps its class, and a message says why. Needs Node 22.15 or later and ES
 * modules; files outside the directory keep their old code.
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

/** Editors and tools write in several steps, and several files. */
const SETTLE_MS = 60;
/** How often to look for a directory that was taken away: nothing would tell. */
const LOOK_AGAIN_MS = 500;

const IGNORED = /^\.|^node_modules$/;

/** A file that is not as it was. */
export interface FileChange {
  readonly file: string;
  readonly kind: "added" | "changed" | "removed";
}

interface Snapshot {
  /** What a file's time and size were. */
  readonly files: ReadonlyMap<string, string>;
  /** Which directory it was: one that was made anew under the same name needs another watcher. */
  readonly folders: ReadonlyMap<string, string>;
}

/**
 * Tells which files below a directory changed. Events are only a sign to look: two looks are compared, so nothing depends on how
 * an editor saves, or on events that are late, doubled or lost.
 */
export class FileChanges {
  readonly #root: string;
  readonly #changed: (changes: readonly FileChange[]) => Promise<void>;
  readonly #failed: (error: unknown) => void;
  readonly #watchers = new Map<string, { readonly mark: string; readonly watcher: FSWatcher }>();
  #seen: Snapshot;
  #timer: NodeJS.Timeout | undefined;
  #looking = false;
  #again = false;
  #closed = false;

  /**
   * Compares with how the files are now. Call {@link FileChanges.start} to be told.
   * @param changed not called again before its promise settles; must not reject.
   * @param failed a directory cannot be watched (too many are, say): its changes go unnoticed.
   */
  constructor(
    root: string,
    changed: (changes: readonly FileChange[]) => Promise<void>,
    failed: (error: unknown) => void,
  ) {
    this.#root = root;
    this.#changed = changed;
    this.#failed = failed;
    this.#seen = look(root);
  }

  start(): void {
    this.#watchFolders(this.#seen);
    // What happened since the first look.
    this.#soon();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const { watcher } of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #soon(delayMs = SETTLE_MS): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#look(), delayMs);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    if (this.#looking) {
      this.#again = true;
      return;
    }
    this.#looking = true;
    const now = look(this.#root);
    // In a new directory there may be more already than this look saw.
    if (this.#watchFolders(now)) this.#again = true;
    const changes = compare(this.#seen.files, now.files);
    this.#seen = now;
    if (changes.length > 0) await this.#changed(changes);
    this.#looking = false;
    if (this.#again) this.#soon();
    else if (now.folders.size === 0) this.#soon(LOOK_AGAIN_MS);
    this.#again = false;
  }

  /** @returns whether there is a directory that was not watched before. */
  #watchFolders({ folders }: Snapshot): boolean {
    for (const [folder, { mark, watcher }] of this.#watchers) {
      if (folders.get(folder) === mark) continue;
      watcher.close();
      this.#watchers.delete(folder);
    }
    let fresh = false;
    for (const [folder, mark] of folders) {
      if (this.#watchers.has(folder) || this.#closed) continue;
      try {
        const watcher = watch(folder, { persistent: false }, () => this.#soon());
        // It was taken away. The event before that leads to another look.
        watcher.on("error", () => this.#soon());
        this.#watchers.set(folder, { mark, watcher });
        fresh = true;
      } catch (thrown) {
        if (isThere(folder)) this.#failed(thrown);
      }
    }
    return fresh;
  }
}

function look(root: string): Snapshot {
  const files = new Map<string, string>();
  const folders = new Map<string, string>();
  // Links may lead round in a circle.
  const visited = new Set<string>();
  const visit = (path: string, stats: BigIntStats | undefined) => {
    if (stats?.isFile()) files.set(path, `${stats.mtimeNs} ${stats.size} ${stats.ino}`);
    if (!stats?.isDirectory()) return;
    // Numbers of what was deleted are given out again.
    const mark = `${stats.dev} ${stats.ino} ${stats.birthtimeNs}`;
    const names = visited.has(mark) ? undefined : namesIn(path);
    if (names === undefined) return;
    visited.add(mark);
    folders.set(path, mark);
    for (const name of names) if (!IGNORED.test(name)) visit(join(path, name), statsOf(join(path, name)));
  };
  visit(root, statsOf(root));
  return { files, folders };
}

/** Undefined when it is gone, or never was one: files come and go while one looks. */
function namesIn(folder: string): string[] | undefined {
  try {
    return readdirSync(folder);
  } catch {
    return undefined;
  }
}

function statsOf(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function isThere(path: string): boolean {
  return statsOf(path) !== undefined;
}

function compare(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): FileChange[] {
  const changes: FileChange[] = [];
  for (const [file, mark] of after) {
    const old = before.get(file);
    if (old !== mark) changes.push({ file, kind: old === undefined ? "added" : "changed" });
  }
  for (const file of before.keys()) if (!after.has(file)) changes.push({ file, kind: "removed" });
  return changes;
}

import * as nodeModule from "node:module";

let graphs = 0;

/** A text without the numbers that a {@link ModuleGraph} puts into URLs, for people. */
function withoutVersions(text: string): string {
  return text.replace(/\?perdure\d+=\d+(?:&perdure\d+=\d+)*/g, "");
}

/**
 * Knows which modules below a directory import which, and has Node load changed ones anew. Node keeps each module under its URL
 * for ever, so a changed one, and all that imports it, get a number in their query. Modules outside, packages and what
 * `require()` loads keep their old code. Old modules stay in memory: for development.
 */
class ModuleGraph {
  readonly #root: string;
  readonly #key = `perdure${++graphs}`;
  readonly #versions = new Map<string, number>();
  readonly #importers = new Map<string, Set<string>>();
  /** Modules that import something that was not there. */
  readonly #broken = new Set<string>();
  readonly #hooks: { deregister(): void };
  #round = 0;
  /** When everything was last made to be read anew. */
  #floor = 0;

  /** Sees imports from now on. @param root a real path, as Node uses @throws PerdureError `bad_config` without module hooks */
  constructor(root: string) {
    this.#root = root + sep;
    // Newer than the oldest Node that the rest runs on, where an import of this name would not even link.
    const { registerHooks }: Partial<Pick<typeof nodeModule, "registerHooks">> = nodeModule;
    if (registerHooks === undefined) {
      throw new PerdureError("bad_config", `Watching agents needs Node 22.15 or later, not ${process.version}.`);
    }
    this.#hooks = registerHooks({
      resolve: (specifier, context, next) => {
        const importer = this.#own(context.parentURL);
        let resolved: ReturnType<typeof next>;
        try {
          resolved = next(specifier, context);
        } catch (thrown) {
          if (importer !== undefined) this.#broken.add(importer);
          throw thrown;
        }
        const file = this.#own(resolved.url);
        if (file === undefined) return resolved;
        const importers = this.#importers.get(file) ?? new Set();
        if (importer !== undefined) importers.add(importer);
        this.#importers.set(file, importers);
        const version = this.#versions.get(file) ?? this.#floor;
        // `require()` keeps its modules by file name, and knows no queries.
        if (version === 0 || context.conditions.includes("require")) return resolved;
        const url = new URL(resolved.url);
        url.searchParams.set(this.#key, String(version));
        return { ...resolved, url: url.href };
      },
    });
  }

  /** Whether anything has imported this file. */
  knows(file: string): boolean {
    return this.#importers.has(file);
  }

  /** The next import of these files, and of everything that imports them, reads them anew. What was broken, too. */
  touch(files: Iterable<string>): void {
    this.#round++;
    const touched = new Set<string>();
    const waiting = [...files, ...this.#broken];
    this.#broken.clear();
    for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
      if (touched.has(file)) continue;
      touched.add(file);
      this.#versions.set(file, this.#round);
      waiting.push(...(this.#importers.get(file) ?? []));
    }
  }

  /** As {@link ModuleGraph.touch}, for every module below the directory, seen or not. */
  touchAll(): void {
    this.#floor = ++this.#round;
    this.#versions.clear();
    this.#broken.clear();
  }

  close(): void {
    this.#hooks.deregister();
  }

  /** The file of a URL, if it is below the directory and not of a package. */
  #own(url: string | undefined): string | undefined {
    if (url?.startsWith("file:") !== true) return undefined;
    const file = fileURLToPath(url);
    const isOwn = file.startsWith(this.#root) && !file.slice(this.#root.length).split(sep).includes("node_modules");
    return isOwn ? file : undefined;
  }
}
