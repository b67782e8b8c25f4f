import { PerdureError } from "../../base/error.ts";
import { countFiles, deleteFilesIn, type FileMeta, type FileRow, filesBelow, filesIn, LIVE } from "../../store/file.ts";
import type { AgentHost } from "../../port.ts";
import { ByteFiles, MAX_FILE_BYTES } from "./byte-files.ts";
import { keptIn, type KeptFiles } from "./kept-files.ts";
import type { LargeFiles } from "./large-files.ts";
import { joinPath, nameOf, normalizePath, parentOf, ROOT } from "../sandbox/path.ts";
import { compileGlob } from "./pattern.ts";
import { checkWorkspaceOptions, type WorkspaceOptions } from "./workspace-options.ts";
import { posixError, posixNameOf } from "../sandbox/posix-error.ts";
import { checkNamespace, listenersOf, realmOf, type SharedRealm, type WorkspaceListener } from "./realm.ts";
import { diffVersions, restoreTo, sameBytes, versionOf } from "./restore.ts";
import { sortInPieces } from "./sort-in-pieces.ts";
import { concat } from "../../base/bytes.ts";
import { encodeText, textOf, tooLarge } from "./text.ts";
import type {
  PageOptions,
  PointChange,
  RestoreResult,
  WorkspaceEntry,
  WorkspaceFiles,
  WorkspaceInfo,
  WorkspacePoint,
} from "./types.ts";

/** Larger files do not stand in the agent's database. */
const INLINE_LIMIT = 1_500_000;
const MAX_POINTS = 200;
/** How many entries are looked at before others have their turn. */
const GLOB_PAGE = 500;
/** How long a glob is tried before others have their turn. */
const GLOB_BREATH_MS = 10;
/** How often a change is tried again that others were quicker than. */
const MAX_TRIES = 20;

/**
 * An agent's files, in its own database: they survive restarts, each write is one commit, and points, which cost nothing to make,
 * tie states of the whole tree to messages. A change is committed when its method resolves; small writes before it returns.
 */
export class Workspace extends ByteFiles implements WorkspaceFiles {
  readonly #host: AgentHost;
  readonly #ns: string;
  readonly #largeFiles: LargeFiles | undefined;
  readonly #inlineLimit: number;
  readonly #maxFileBytes: number;
  readonly #maxPoints: number;
  #opened: SharedRealm | undefined;

  /** @throws PerdureError `bad_config` for options that cannot work */
  constructor(options: WorkspaceOptions) {
    super();
    checkWorkspaceOptions(options);
    this.#host = options.host;
    this.#ns = checkNamespace(options.namespace ?? "main");
    this.#largeFiles = options.largeFiles;
    this.#inlineLimit = options.inlineLimit ?? INLINE_LIMIT;
    this.#maxFileBytes = options.maxFileBytes ?? MAX_FILE_BYTES;
    this.#maxPoints = options.maxPoints ?? MAX_POINTS;
    if (options.onChange !== undefined) this.watch(options.onChange);
  }

  // At first use: most agents never have a file, and a workspace that is replaced by another says nothing about it.
  get #realm(): SharedRealm {
    return (this.#opened ??= realmOf(this.#host, this.#ns, this.#largeFiles));
  }

  /** Pictures and documents that a model has seen, which must outlive their files. */
  get kept(): KeptFiles {
    return keptIn(this.#host);
  }

  /** Calls `listener` after each change, until the function that it returns is called. */
  watch(listener: WorkspaceListener): () => void {
    const listeners = listenersOf(this.#host, this.#ns);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  protected override get maxFileBytes(): number {
    return this.#maxFileBytes;
  }

  async readFile(path: string): Promise<string | null> {
    const row = this.#file(path);
    return row === undefined ? null : textOf(path, await this.#realm.bodies.read(row));
  }

  async readFileBytes(path: string): Promise<Uint8Array> {
    const row = this.#file(path);
    if (row === undefined) throw posixError("ENOENT", `There is no file ${path}.`);
    return this.#realm.bodies.read(row);
  }

  async writeFileBytes(path: string, bytes: Uint8Array): Promise<void> {
    await this.#write(normalizePath(path), bytes);
  }

  async appendFileBytes(path: string, bytes: Uint8Array): Promise<void> {
    await this.#update(path, (old) => (old === undefined ? bytes : concat([old, bytes])));
  }

  /**
   * Changes a text atomically. `change` gets the text, or null without a file; returning null leaves it. It may run again when
   * others were quicker, so it must do nothing else. What it throws is thrown.
   */
  async updateFile(path: string, change: (text: string | null) => string | null): Promise<void> {
    await this.#update(path, (old) => {
      const text = change(old === undefined ? null : textOf(path, old));
      return text === null ? undefined : encodeText(text);
    });
  }

  async stat(path: string): Promise<WorkspaceEntry | null> {
    return this.#entryAt(path, true);
  }

  async lstat(path: string): Promise<WorkspaceEntry | null> {
    return this.#entryAt(path, false);
  }

  async readDir(path: string, options: PageOptions = {}): Promise<WorkspaceEntry[]> {
    const { host, ns, tree } = this.#realm;
    const { path: at, row } = tree.need(normalizePath(path), true);
    if (row.kind !== "directory") throw posixError("ENOTDIR", `${path} is a ${row.kind}, not a directory.`);
    const { limit = LIVE, offset = 0 } = options;
    return filesIn(host, ns, at, limit, offset).map((one) => toEntry(joinPath(at, one.name), one));
  }

  async glob(pattern: string, options: { readonly limit?: number } = {}): Promise<WorkspaceEntry[]> {
    const { host, ns, tree } = this.#realm;
    const { limit = Number.POSITIVE_INFINITY } = options;
    const wanted = await compileGlob(pattern);
    const { base } = wanted;
    const found: WorkspaceEntry[] = [];
    const top = tree.lookup(base);
    if (top !== undefined && base !== ROOT && wanted.test(base)) found.push(toEntry(base, top));
    let after: { parent: string; name: string } | undefined;
    let breath = GLOB_BREATH_MS;
    while (found.length < limit) {
      const page = filesBelow(host, ns, { dir: base, limit: GLOB_PAGE, ...(after !== undefined && { after }) });
      for (const row of page) {
        const path = joinPath(row.parent, row.name);
        if (wanted.test(path)) found.push(toEntry(path, row));
        if (wanted.spentMs < breath) continue;
        breath = wanted.spentMs + GLOB_BREATH_MS;
        await host.breathe();
      }
      after = page.at(-1);
      if (page.length < GLOB_PAGE) break;
      await host.breathe();
    }
    const sorted = await sortInPieces(
      found,
      (a, b) => (a.path < b.path ? -1 : 1),
      () => host.breathe(),
    );
    return sorted.slice(0, limit);
  }

  async mkdir(path: string, options: { readonly recursive?: boolean } = {}): Promise<void> {
    this.#realm.sweepOnce();
    this.#realm.tree.makeDirectory(normalizePath(path), options.recursive === true);
  }

  async rm(path: string, options: { readonly recursive?: boolean; readonly force?: boolean } = {}): Promise<void> {
    this.#realm.tree.remove(normalizePath(path), options.recursive === true, options.force === true);
  }

  async rename(from: string, to: string): Promise<void> {
    this.#realm.tree.move(normalizePath(from), normalizePath(to));
  }

  async cp(from: string, to: string, options: { readonly recursive?: boolean } = {}): Promise<void> {
    this.#realm.tree.copy(normalizePath(from), normalizePath(to), options.recursive === true);
  }

  async symlink(target: string, path: string): Promise<void> {
    const at = normalizePath(path);
    // Throws for what could not be a path, and for what leads out.
    normalizePath(target, parentOf(at));
    this.#realm.tree.link(target, at);
  }

  async readlink(path: string): Promise<string> {
    const { row } = this.#realm.tree.need(normalizePath(path), false);
    if (row.kind !== "symlink") throw posixError("EINVAL", `${path} is no symlink.`);
    return row.target ?? "";
  }

  async chmod(path: string, mode: number): Promise<void> {
    if (!Number.isInteger(mode) || mode < 0) throw posixError("EINVAL", "A mode is a whole number, such as 0o644.");
    this.#realm.tree.touch(normalizePath(path), { mode });
  }

  async utimes(path: string, mtimeMs: number): Promise<void> {
    if (!Number.isFinite(mtimeMs)) throw posixError("EINVAL", "A time is a number of milliseconds.");
    this.#realm.tree.touch(normalizePath(path), { mtime: Math.trunc(mtimeMs) });
  }

  /** How much there is. */
  async info(): Promise<WorkspaceInfo> {
    const { host, ns, versions } = this.#realm;
    const counts = new Map(countFiles(host, ns).map((row) => [row.kind, row]));
    const of = (kind: FileRow["kind"]) => counts.get(kind)?.n ?? 0;
    return {
      ...{ files: of("file"), directories: of("directory"), symlinks: of("symlink") },
      ...{ bytes: counts.get("file")?.bytes ?? 0, points: versions.list().length, version: versions.counter().version },
    };
  }

  /**
   * Ties the current state to a message, in the caller's transaction. Cost does not grow with the files; writes nothing if there
   * never was one.
   * @throws PerdureError `bad_input` for what cannot be the id of a message
   */
  mark(messageId: string): void {
    const { host, versions, bodies } = this.#realm;
    if (versions.counter().version === 0) return void versions.mark(messageId, host.clock.now());
    host.tx(() => bodies.release([...versions.mark(messageId, host.clock.now()), ...versions.trim(this.#maxPoints)]));
  }

  /** The states that can be restored, oldest first. */
  points(): WorkspacePoint[] {
    return this.#realm.versions.list();
  }

  /** There never was a file. Points are not stored until there is one: they go with the agent's memory. */
  get isUnused(): boolean {
    return this.#realm.versions.counter().version === 0;
  }

  hasPoint(messageId: string): boolean {
    return this.#realm.versions.find(messageId) !== undefined;
  }

  /**
   * Restores all files to when a message was marked, in one transaction (the caller's, if any). Version 0 is the empty workspace.
   * The state before becomes a point, so this can be undone.
   * @throws PerdureError `not_found` when there is no such point
   */
  restore(point: string | number): RestoreResult {
    const { host, tree, versions, bodies } = this.#realm;
    return host.tx(() => {
      const result = restoreTo(this.#realm, versionOf(this.#realm, point));
      bodies.release(versions.trim(this.#maxPoints));
      // After it, listeners may find anything anywhere.
      tree.tell("update", ROOT, "directory");
      return result;
    });
  }

  /** Forgets a point, and what only it needed. @returns whether there was one */
  forgetPoint(messageId: string): boolean {
    const { host, versions, bodies } = this.#realm;
    if (!this.hasPoint(messageId)) return false;
    host.tx(() => bodies.release(versions.forget(messageId)));
    return true;
  }

  /**
   * What changed between two points, or since one. With the lines for texts that are not too long.
   * Rejects with `not_found` when there is no such point.
   */
  async diffPoints(a: string | number, b?: string | number): Promise<PointChange[]> {
    const { versions } = this.#realm;
    const from = versionOf(this.#realm, a);
    const to = b === undefined ? undefined : versionOf(this.#realm, b);
    if (versions.counter().version === 0) return [];
    return diffVersions(this.#realm, from, to);
  }

  /** Deletes large bytes that a crash left behind. Runs by itself at the first write of each life. @returns how many */
  async sweep(): Promise<number> {
    return this.#realm.bodies.sweep();
  }

  /** Deletes everything in this namespace: files, points and all that they needed. Resolves when the bytes are gone, too. */
  async deleteAll(): Promise<void> {
    const { host, ns, versions, bodies, tree } = this.#realm;
    host.tx(() => {
      bodies.release(deleteFilesIn(host, ns));
      versions.clear();
      tree.tell("delete", ROOT, "directory");
    });
    await bodies.sweep();
  }

  /** The row of a file; undefined when there is none. */
  #file(path: string): FileRow | undefined {
    const { row } = this.#realm.tree.find(normalizePath(path), true);
    if (row?.kind === "directory") throw posixError("EISDIR", `${path} is a directory.`);
    return row;
  }

  #entryAt(path: string, follow: boolean): WorkspaceEntry | null {
    const normal = normalizePath(path);
    try {
      const { row } = this.#realm.tree.find(normal, follow);
      return row === undefined ? null : toEntry(normal, row);
    } catch (thrown) {
      // Below a file there is nothing.
      if (posixNameOf(thrown) === "ENOTDIR") return null;
      throw thrown;
    }
  }

  async #write(path: string, bytes: Uint8Array, unless?: (row: FileRow | undefined) => boolean): Promise<boolean> {
    if (!(bytes instanceof Uint8Array)) throw posixError("EINVAL", "The content must be bytes.");
    if (bytes.length > this.#maxFileBytes) throw tooLarge(path, this.#maxFileBytes);
    const { bodies, tree } = this.#realm;
    this.#realm.sweepOnce();
    const prepared = bodies.prepare(bytes, this.#inlineLimit);
    const content = prepared instanceof Promise ? await prepared : prepared;
    try {
      return tree.putFile(path, content, unless);
    } finally {
      bodies.done(content);
    }
  }

  /** At once where nobody else changes it; those whom others were quicker than go one after the other. */
  async #update(path: string, change: (old: Uint8Array | undefined) => Uint8Array | undefined): Promise<void> {
    const at = normalizePath(path);
    if (await this.#tryUpdate(at, change)) return;
    await this.#realm.turns.run(at, async () => {
      for (let tries = 1; tries < MAX_TRIES; tries++) if (await this.#tryUpdate(at, change)) return;
      throw new PerdureError("conflict", `${path} keeps being changed by others. Try again later.`);
    });
  }

  async #tryUpdate(at: string, change: (old: Uint8Array | undefined) => Uint8Array | undefined): Promise<boolean> {
    const row = this.#file(at);
    const old = row && (this.#realm.bodies.readNow(row) ?? (await this.#realm.bodies.read(row)));
    const next = change(old);
    if (next === undefined) return true;
    return this.#write(at, next, (now) => !isSameContent(row, now));
  }
}

function isSameContent(a: FileRow | undefined, b: FileRow | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.hash === b.hash && sameBytes(a.content, b.content);
}

function toEntry(path: string, row: FileMeta): WorkspaceEntry {
  const { kind, size, mtime, mode, target } = row;
  return { path, name: nameOf(path), type: kind, size, mtimeMs: mtime, mode, ...(target !== null && { target }) };
}
