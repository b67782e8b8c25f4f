import { InOrder } from "../../../base/in-order.ts";
import { randomUUID } from "node:crypto";
import { constants, type Stats } from "node:fs";
import * as fs from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { PerdureError } from "../../../base/error.ts";
import { ByteFiles, MAX_FILE_BYTES } from "../byte-files.ts";
import { isWithin, joinPath, linkTarget, nameOf, normalizePath, parentOf, partsOf, ROOT } from "../../sandbox/path.ts";
import { compileGlob } from "../pattern.ts";
import { posixError, posixNameOf } from "../../sandbox/posix-error.ts";
import { encodeText, textOf, tooLarge } from "../text.ts";
import type { PageOptions, WorkspaceEntry, WorkspaceFiles } from "../types.ts";
import { Jail, NO_FOLLOW, toVirtualError } from "./jail.ts";

/** A search in a directory with more entries ends there. */
const MAX_WALKED = 100_000;
const FILE_MODE = 0o644;
/** Opening a pipe waits for whoever writes to it. */
const NO_WAITING = constants.O_NONBLOCK ?? 0;
const MODE_BITS = 0o7777;

/** The files below a directory. */
export function openLocalFiles(directory: string): WorkspaceFiles & Pick<LocalFiles, "updateFile"> {
  return new LocalFiles(directory);
}

class LocalFiles extends ByteFiles implements WorkspaceFiles {
  readonly #jail: Jail;
  readonly #order = new InOrder();

  constructor(directory: string) {
    super();
    this.#jail = new Jail(resolve(directory));
  }

  async readFile(path: string): Promise<string | null> {
    const stat = await this.stat(path);
    return stat === null ? null : textOf(path, await this.readFileBytes(path));
  }

  readFileBytes(path: string): Promise<Uint8Array> {
    return guard(path, () =>
      this.#opened(path, async (handle) => {
        const found = await handle.stat();
        if (found.isDirectory()) throw posixError("EISDIR", `${path} is a directory.`);
        // Pipes and devices may never end.
        if (!found.isFile()) throw posixError("EINVAL", `${path} is no file.`);
        if (found.size > MAX_FILE_BYTES) throw tooLarge(path, MAX_FILE_BYTES);
        return new Uint8Array(await handle.readFile());
      }),
    );
  }

  writeFileBytes(path: string, bytes: Uint8Array): Promise<void> {
    return this.#inTurn(path, () => this.#write(path, bytes));
  }

  appendFileBytes(path: string, bytes: Uint8Array): Promise<void> {
    return this.#inTurn(path, async () => {
      const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | NO_FOLLOW;
      const handle = await fs.open(await this.#jail.writing(path), flags, FILE_MODE);
      try {
        await isStill(handle, await this.#jail.entry(path), path);
        await handle.appendFile(bytes);
      } finally {
        await handle.close();
      }
    });
  }

  updateFile(path: string, change: (text: string | null) => string | null): Promise<void> {
    return this.#inTurn(path, async () => {
      const next = change(await this.readFile(path));
      if (next !== null) await this.#write(path, encodeText(next));
    });
  }

  stat(path: string): Promise<WorkspaceEntry | null> {
    return guard(path, async () => {
      const found = await this.#jail.stat(path, true);
      return found && toEntry(normalizePath(path), found);
    });
  }

  lstat(path: string): Promise<WorkspaceEntry | null> {
    return guard(path, async () => {
      const found = await this.#jail.stat(path, false);
      return found && this.#entryOf(normalizePath(path), found);
    });
  }

  readDir(path: string, options: PageOptions = {}): Promise<WorkspaceEntry[]> {
    return guard(path, async () => {
      const { offset = 0, limit = Number.POSITIVE_INFINITY } = options;
      const place = await this.#jail.reading(path);
      const names = (await fs.readdir(place)).sort();
      if ((await this.#jail.reading(path)) !== place) throw changed(path);
      const entries: WorkspaceEntry[] = [];
      for (const name of names.slice(offset, offset + limit)) {
        const entry = await this.lstat(joinPath(normalizePath(path), name));
        if (entry !== null) entries.push(entry);
      }
      return entries;
    });
  }

  glob(pattern: string, options: { readonly limit?: number } = {}): Promise<WorkspaceEntry[]> {
    return guard(pattern, async () => {
      const { limit = Number.POSITIVE_INFINITY } = options;
      const wanted = await compileGlob(pattern);
      const found: WorkspaceEntry[] = [];
      const waiting = [wanted.base];
      for (let walked = 0; waiting.length > 0 && walked < MAX_WALKED && found.length < limit; walked++) {
        const path = waiting.pop() ?? ROOT;
        const entry = await this.lstat(path);
        if (entry === null) continue;
        if (path !== ROOT && wanted.test(path)) found.push(entry);
        if (entry.type !== "directory") continue;
        const names = await fs.readdir(await this.#jail.entry(path)).catch(() => []);
        // Not all at once: a call takes no more arguments than the stack has room for.
        for (const name of names) waiting.push(joinPath(path, name));
      }
      return found.sort((a, b) => (a.path < b.path ? -1 : 1));
    });
  }

  mkdir(path: string, options: { readonly recursive?: boolean } = {}): Promise<void> {
    return this.#inTurn(path, async () => {
      const recursive = options.recursive === true;
      if (normalizePath(path) === ROOT && recursive) return;
      const [first = "", ...rest] = partsOf(normalizePath(path));
      // One by one: each directory is checked before something is made in it.
      if (recursive)
        for (let at = ROOT + first, left = rest; ; at = joinPath(at, left[0] ?? ""), left = left.slice(1)) {
          if ((await this.#jail.stat(at, true)) === null) await fs.mkdir(await this.#jail.entry(at));
          if (left.length === 0) break;
        }
      else await fs.mkdir(await this.#jail.entry(path));
      if ((await this.stat(path))?.type !== "directory") throw posixError("EEXIST", `${path} is there already.`);
    });
  }

  rm(path: string, options: { readonly recursive?: boolean; readonly force?: boolean } = {}): Promise<void> {
    return this.#inTurn(path, async () => {
      const { recursive = false, force = false } = options;
      if (normalizePath(path) === ROOT) throw posixError("EPERM", "The root cannot be deleted.");
      try {
        const place = await this.#jail.entry(path);
        const isDirectory = (await fs.lstat(place)).isDirectory();
        if (isDirectory && !recursive) await fs.rmdir(place);
        else await fs.rm(place, { recursive });
      } catch (thrown) {
        if (!(force && posixNameOf(thrown) === "ENOENT")) throw thrown;
      }
    });
  }

  rename(from: string, to: string): Promise<void> {
    return this.#inTurn(from, async () => {
      const [source, target] = [normalizePath(from), normalizePath(to)];
      if (source === ROOT || target === ROOT || (source !== target && isWithin(target, source)))
        throw posixError("EINVAL", `${from} cannot be moved to ${to}.`);
      const place = await this.#jail.entry(from);
      await fs.lstat(place);
      if ((await this.#jail.stat(parentOf(target), true)) === null) await this.#makeParents(target);
      await fs.rename(place, await this.#jail.entry(to));
    });
  }

  async cp(from: string, to: string, options: { readonly recursive?: boolean } = {}): Promise<void> {
    const [source, target] = [normalizePath(from), normalizePath(to)];
    const entry = await this.lstat(source);
    if (entry === null) throw posixError("ENOENT", `There is no file or directory ${from}.`);
    if (source !== target && isWithin(target, source) && entry.type === "directory")
      throw posixError("EINVAL", `${from} cannot be copied into itself.`);
    if (entry.type === "symlink") return this.symlink(await this.readlink(source), target);
    if (entry.type === "file") return this.writeFileBytes(target, await this.readFileBytes(source));
    if (options.recursive !== true) throw posixError("EISDIR", `${from} is a directory. Copy it with recursive.`);
    await this.mkdir(target, { recursive: true });
    for (const { name } of await this.readDir(source))
      await this.cp(joinPath(source, name), joinPath(target, name), options);
  }

  symlink(target: string, path: string): Promise<void> {
    return this.#inTurn(path, async () => {
      const at = normalizePath(path);
      // Throws for what leads out. On the disk it must be relative: the root of the disk is another one.
      const leads = normalizePath(target, parentOf(at));
      await this.#makeParents(at);
      await fs.symlink(relative(parentOf(at), leads) || ".", await this.#jail.entry(path));
    });
  }

  readlink(path: string): Promise<string> {
    return guard(path, async () => this.#targetOf(normalizePath(path)));
  }

  chmod(path: string, mode: number): Promise<void> {
    return this.#inTurn(path, async () => {
      const bits = mode & MODE_BITS;
      try {
        await this.#opened(path, (handle) => handle.chmod(bits));
      } catch (thrown) {
        // One that nobody may read cannot be opened, but its mode can be changed.
        if (!(thrown instanceof Error && "code" in thrown && thrown.code === "EACCES")) throw thrown;
        await fs.chmod(await this.#jail.reading(path), bits);
      }
    });
  }

  utimes(path: string, mtimeMs: number): Promise<void> {
    const time = new Date(mtimeMs);
    return guard(path, () => this.#opened(path, (handle) => handle.utimes(time, time)));
  }

  /**
   * Opens what a path leads to. A symlink may have replaced part of it since it was checked, so what was opened is compared with
   * where the path leads then.
   */
  async #opened<T>(path: string, work: (handle: fs.FileHandle) => Promise<T>): Promise<T> {
    const handle = await fs.open(await this.#jail.reading(path), constants.O_RDONLY | NO_FOLLOW | NO_WAITING);
    try {
      await isStill(handle, await this.#jail.reading(path), path);
      return await work(handle);
    } finally {
      await handle.close();
    }
  }

  async #makeParents(path: string): Promise<void> {
    const parent = parentOf(path);
    if (parent === ROOT || (await this.#jail.stat(parent, true)) !== null) return;
    await this.#makeParents(parent);
    await fs.mkdir(await this.#jail.entry(parent));
  }

  /** Beside it first, then in its place: so a file is always the old one or the new one. */
  async #write(path: string, bytes: Uint8Array): Promise<void> {
    if (bytes.length > MAX_FILE_BYTES) throw tooLarge(path, MAX_FILE_BYTES);
    const place = await this.#jail.writing(path);
    const mode = (await this.#jail.stat(path, false))?.mode ?? FILE_MODE;
    const draft = join(dirname(place), `.${randomUUID()}.draft`);
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW;
    const handle = await fs.open(draft, flags, mode & MODE_BITS);
    try {
      try {
        await isStill(handle, join(dirname(await this.#jail.entry(path)), basename(draft)), path);
        await handle.writeFile(bytes);
      } finally {
        await handle.close();
      }
      await fs.rename(draft, place);
    } catch (thrown) {
      await fs.rm(draft, { force: true });
      throw thrown;
    }
  }

  async #entryOf(path: string, found: Stats): Promise<WorkspaceEntry> {
    const entry = toEntry(path, found);
    return entry.type === "symlink" ? { ...entry, target: await this.#targetOf(path) } : entry;
  }

  async #targetOf(path: string): Promise<string> {
    const target = await fs.readlink(await this.#jail.entry(path));
    if (!target.startsWith("/")) return target;
    // The real path of something outside is nobody's business.
    const inside = await this.#jail.virtual(target);
    return inside === undefined ? "(outside of the workspace)" : linkTarget(path, inside);
  }

  #inTurn<T>(path: string, work: () => Promise<T>): Promise<T> {
    return this.#order.run(() => guard(path, work));
  }
}

/** @throws PerdureError `EPERM` when what was opened is not what is at `place` */
async function isStill(handle: fs.FileHandle, place: string, path: string): Promise<void> {
  const opened = await handle.stat({ bigint: true });
  const there = await fs.lstat(place, { bigint: true });
  if (opened.ino !== there.ino || opened.dev !== there.dev) throw changed(path);
}

function changed(path: string): PerdureError {
  return posixError("EPERM", `${path} was changed while it was being opened. Try again.`);
}

async function guard<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (PerdureError.is(thrown)) throw thrown;
    throw toVirtualError(thrown, path);
  }
}

function toEntry(path: string, found: Stats): WorkspaceEntry {
  const type = found.isDirectory() ? "directory" : found.isSymbolicLink() ? "symlink" : "file";
  const { size, mtimeMs, mode } = found;
  return {
    path,
    name: nameOf(path),
    type,
    size: type === "directory" ? 0 : size,
    mtimeMs: Math.trunc(mtimeMs),
    mode: mode & MODE_BITS,
  };
}
