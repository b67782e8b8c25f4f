import { constants, type Stats } from "node:fs";
import { lstat, mkdir, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative, sep } from "node:path";
import { nameOf, normalizePath, parentOf, ROOT } from "../../sandbox/path.ts";
import { type PosixName, posixError, posixNameOf } from "../../sandbox/posix-error.ts";

/** Opens no symlink: whoever puts one there in the last moment gains nothing. */
export const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;

/** The real places of the paths of a workspace in a directory. */
export class Jail {
  readonly #given: string;
  #root: Promise<string> | undefined;

  constructor(directory: string) {
    this.#given = directory;
  }

  root(): Promise<string> {
    this.#root ??= realpath(this.#given).catch((thrown: unknown) => {
      this.#root = undefined;
      throw thrown;
    });
    return this.#root;
  }

  /** Where a path is that is only looked at; symlinks are followed as far as they stay inside. */
  async reading(path: string): Promise<string> {
    const real = await realpath(join(await this.root(), normalizePath(path)));
    await this.#within(real, path);
    return real;
  }

  /** Where an entry itself is: the directories above it are followed, the last part is not. */
  async entry(path: string): Promise<string> {
    const normal = normalizePath(path);
    if (normal === ROOT) return this.root();
    const parent = await realpath(join(await this.root(), parentOf(normal)));
    await this.#within(parent, path);
    return join(parent, nameOf(normal));
  }

  /** As {@link Jail.entry}, for writing: missing directories are made, and a symlink at the end is refused. */
  async writing(path: string): Promise<string> {
    const normal = normalizePath(path);
    if (normal === ROOT) throw posixError("EISDIR", "/ is a directory.");
    await this.#make(parentOf(normal));
    const place = await this.entry(path);
    const found = await lstat(place).catch(ignoreMissing);
    if (found?.isSymbolicLink()) throw posixError("EPERM", `${path} is a symlink. Write to the file that it leads to.`);
    if (found?.isDirectory()) throw posixError("EISDIR", `${path} is a directory.`);
    return place;
  }

  /** Makes a directory and those above it, none of them through a symlink that leads out. */
  async #make(path: string): Promise<void> {
    try {
      await this.reading(path);
    } catch (thrown) {
      if (posixNameOf(thrown) !== "ENOENT") throw thrown;
      await this.#make(parentOf(path));
      await mkdir(await this.entry(path)).catch((failed: unknown) => {
        if (posixNameOf(failed) !== "EEXIST") throw failed;
      });
    }
  }

  /** A real path as the workspace knows it; undefined when it is outside. */
  async virtual(real: string): Promise<string | undefined> {
    const rest = relative(await this.root(), real);
    if (rest === "") return ROOT;
    if (rest === ".." || rest.startsWith(`..${sep}`) || isAbsolute(rest)) return undefined;
    return ROOT + rest.split(sep).join("/");
  }

  async #within(real: string, path: string): Promise<void> {
    if ((await this.virtual(real)) === undefined)
      throw posixError("EPERM", `${path} leads out of the workspace through a symlink.`);
  }

  /** What is known of a path; null when there is nothing. */
  async stat(path: string, follow: boolean): Promise<Stats | null> {
    try {
      return follow ? await stat(await this.reading(path)) : await lstat(await this.entry(path));
    } catch (thrown) {
      const name = posixNameOf(thrown);
      if (name === "ENOENT" || name === "ENOTDIR") return null;
      throw thrown;
    }
  }
}

function ignoreMissing(thrown: unknown): undefined {
  if (posixNameOf(thrown) === "ENOENT") return undefined;
  throw thrown;
}

const passed: ReadonlySet<PosixName> = new Set<PosixName>([
  ...([
    "ENOENT",
    "EEXIST",
    "ENOTEMPTY",
    "EISDIR",
    "ENOTDIR",
    "ELOOP",
    "ENAMETOOLONG",
    "EFBIG",
    "EROFS",
    "EINVAL",
  ] as const),
]);

/** An error of Node as one of the workspace: its own messages name real paths. */
export function toVirtualError(thrown: unknown, path: string): unknown {
  if (!(thrown instanceof Error) || !("syscall" in thrown)) return thrown;
  const name = posixNameOf(thrown);
  const code = "code" in thrown ? String(thrown.code) : "unknown";
  if (name !== undefined && passed.has(name)) return posixError(name, `${path} (${String(thrown.syscall)}).`);
  return posixError(code === "EACCES" || code === "EPERM" ? "EPERM" : "EIO", `${path} could not be used (${code}).`);
}
