import type { AgentHost } from "../../port.ts";
import {
  closeFileRow,
  countFilesIn,
  deleteFileRow,
  type FileKind,
  type FileMeta,
  type FileRow,
  filesBelow,
  LIVE,
  putFileRow,
  readFileRow,
} from "../../store/file.ts";
import type { Bodies, Content } from "./bodies.ts";
import {
  isWithin,
  joinPath,
  linkTarget,
  MAX_HOPS,
  MAX_PATH,
  nameOf,
  parentOf,
  partsOf,
  ROOT,
} from "../sandbox/path.ts";
import { posixError } from "../sandbox/posix-error.ts";
import type { WorkspaceChange } from "./types.ts";
import type { Counter, Versions } from "./versions.ts";

const DIRECTORY_MODE = 0o755;
const FILE_MODE = 0o644;
const LINK_MODE = 0o777;
const MODE_BITS = 0o7777;

/** What a path leads to, when symlinks are followed. */
interface Found {
  /** Without symlinks, but for the last part where those are not followed. */
  readonly path: string;
  readonly row: FileRow | undefined;
}

const rootRow: FileRow = {
  ...{ parent: "", name: "", since: 0, kind: "directory", mode: DIRECTORY_MODE, size: 0, mtime: 0 },
  ...{ target: null, hash: null, content: null },
};

/** What a tree stands on. */
interface TreeGround {
  readonly host: Pick<AgentHost, "sql" | "tx" | "clock" | "afterTx">;
  readonly ns: string;
  readonly versions: Versions;
  readonly bodies: Bodies;
  /** Told after the commit. Must not throw. */
  changed(change: WorkspaceChange): void;
}

/**
 * One namespace's entries and their operations, each one transaction. Changing an entry that a point needs ends it at that
 * version and adds the new one; otherwise the row is overwritten. Paths are normalised already.
 */
export class Tree {
  readonly #on: TreeGround;

  constructor(ground: TreeGround) {
    this.#on = ground;
  }

  lookup(path: string): FileRow | undefined {
    return path === ROOT ? rootRow : readFileRow(this.#on.host, this.#on.ns, parentOf(path), nameOf(path));
  }

  /** One query where there are no symlinks: an entry is only there when all above it are directories. @throws `ELOOP`, `ENOTDIR` */
  find(path: string, follow: boolean): Found {
    let at = path;
    for (let hops = 0; hops <= MAX_HOPS; hops++) {
      const row = this.lookup(at);
      if (row !== undefined && (row.kind !== "symlink" || !follow)) return { path: at, row };
      const next = row === undefined ? this.#throughLink(at) : linkTarget(at, row.target ?? "");
      if (next === undefined) return { path: at, row: undefined };
      at = next;
    }
    throw posixError("ELOOP", `${path} leads through more than ${MAX_HOPS} symlinks.`);
  }

  /** The entry that a path leads to. @throws PerdureError `ENOENT` */
  need(path: string, follow: boolean): Required<Found> & { readonly row: FileRow } {
    const { path: at, row } = this.find(path, follow);
    if (row === undefined) throw posixError("ENOENT", `There is no file or directory ${path}.`);
    return { path: at, row };
  }

  /** Where a path leads whose entry is not there because a directory above it is a symlink. */
  #throughLink(path: string): string | undefined {
    const parts = partsOf(path);
    let at = ROOT;
    for (const [index, part] of parts.slice(0, -1).entries()) {
      at = joinPath(at, part);
      const row = this.lookup(at);
      if (row === undefined) return undefined;
      if (row.kind === "file") throw posixError("ENOTDIR", `${at} is a file, so there is nothing below it.`);
      if (row.kind === "symlink")
        return linkTarget(at, `${linkTarget(at, row.target ?? "")}/${parts.slice(index + 1).join("/")}`);
    }
    return undefined;
  }

  below(dir: string): FileMeta[] {
    return filesBelow(this.#on.host, this.#on.ns, { dir, limit: LIVE });
  }

  /** Writes a file. @param unless is asked in the same transaction, with what stands there: true means not to write. */
  putFile(path: string, content: Content, unless?: (row: FileRow | undefined) => boolean): boolean {
    return this.#on.host.tx(() => {
      const { path: at, row } = this.find(path, true);
      if (row?.kind === "directory") throw posixError("EISDIR", `${path} is a directory.`);
      if (unless?.(row) === true) return false;
      this.#makeParents(at);
      const held = this.#on.bodies.refer(content);
      this.put(at, row, {
        ...{ kind: "file", mode: row?.mode ?? FILE_MODE, size: content.bytes.length, mtime: this.#on.host.clock.now() },
        ...{ target: null, ...held },
      });
      this.tell(row === undefined ? "create" : "update", at, "file");
      return true;
    });
  }

  makeDirectory(path: string, recursive: boolean): void {
    this.#on.host.tx(() => {
      const { path: at, row } = this.find(path, true);
      if (row?.kind === "directory" && recursive) return;
      if (row !== undefined || this.lookup(path) !== undefined) throw posixError("EEXIST", `${path} is there already.`);
      if (recursive) this.#makeParents(at);
      else this.#needParent(at);
      this.#putDirectory(at);
      this.tell("create", at, "directory");
    });
  }

  link(target: string, path: string): void {
    this.#on.host.tx(() => {
      const { path: at, row } = this.find(path, false);
      if (row !== undefined) throw posixError("EEXIST", `${path} is there already.`);
      this.#makeParents(at);
      this.put(at, undefined, {
        ...{ kind: "symlink", mode: LINK_MODE, size: target.length, mtime: this.#on.host.clock.now() },
        ...{ target, hash: null, content: null },
      });
      this.tell("create", at, "symlink");
    });
  }

  remove(path: string, recursive: boolean, force: boolean): void {
    this.#on.host.tx(() => {
      const { path: at, row } = this.find(path, false);
      if (row === undefined) {
        if (force) return;
        throw posixError("ENOENT", `There is no file or directory ${path}.`);
      }
      if (row.kind === "directory") {
        if (recursive) this.dropAll(this.below(at));
        else if (at !== ROOT && countFilesIn(this.#on.host, this.#on.ns, at) > 0)
          throw posixError("ENOTEMPTY", `${path} is a directory that is not empty. Delete it with recursive.`);
      }
      if (at === ROOT && !recursive)
        throw posixError("EPERM", "The root cannot be deleted; what is in it can, with recursive.");
      if (at !== ROOT) this.drop(row);
      this.tell("delete", at, row.kind);
    });
  }

  move(from: string, to: string): void {
    this.#on.host.tx(() => {
      const { path: source, row } = this.need(from, false);
      const { path: target, row: old } = this.find(to, false);
      if (source === target) return;
      if (source === ROOT || isWithin(target, source))
        throw posixError("EINVAL", `${from} cannot be moved into itself.`);
      this.#mayReplace(row.kind, to, target, old);
      this.#makeParents(target);
      const rows = row.kind === "directory" ? this.below(source) : [];
      this.#copyRow(row, target, old);
      for (const below of rows) this.#copyRow(below, moved(below, source, target), undefined);
      this.dropAll([...rows, row]);
      this.tell("delete", source, row.kind);
      this.tell(old === undefined ? "create" : "update", target, row.kind);
    });
  }

  copy(from: string, to: string, recursive: boolean): void {
    this.#on.host.tx(() => {
      const { path: source, row } = this.need(from, false);
      const { path: target, row: old } = this.find(to, row.kind === "file");
      if (source === target) return;
      if (row.kind === "directory" && !recursive)
        throw posixError("EISDIR", `${from} is a directory. Copy it with recursive.`);
      if (row.kind === "directory" && isWithin(target, source))
        throw posixError("EINVAL", `${from} cannot be copied into itself.`);
      if (old?.kind === "directory" && row.kind !== "directory") throw posixError("EISDIR", `${to} is a directory.`);
      if (old !== undefined && old.kind !== "directory" && row.kind === "directory")
        throw posixError("ENOTDIR", `${to} is no directory.`);
      this.#makeParents(target);
      const rows = row.kind === "directory" ? this.below(source) : [];
      if (old?.kind !== "directory") this.#copyRow(row, target, old);
      for (const below of rows) this.#merge(below, moved(below, source, target));
      this.tell(old === undefined ? "create" : "update", target, row.kind);
    });
  }

  /** Changes what is said about an entry. */
  touch(path: string, change: { readonly mode?: number; readonly mtime?: number }): void {
    this.#on.host.tx(() => {
      const { path: at, row } = this.need(path, true);
      if (at === ROOT) return;
      const mode = change.mode === undefined ? row.mode : change.mode & MODE_BITS;
      this.#on.bodies.referAgain(row);
      this.put(at, row, { ...row, mode, mtime: change.mtime ?? row.mtime });
      this.tell("update", at, row.kind);
    });
  }

  #merge(row: FileMeta, target: string): void {
    const old = this.lookup(target);
    if (old === undefined || (old.kind !== "directory" && row.kind !== "directory")) this.#copyRow(row, target, old);
    else if (old.kind !== row.kind)
      throw posixError(
        old.kind === "directory" ? "EISDIR" : "ENOTDIR",
        `${target} is a ${old.kind}, not a ${row.kind}.`,
      );
  }

  #mayReplace(kind: FileKind, to: string, target: string, old: FileRow | undefined): void {
    if (old === undefined) return;
    if (kind !== "directory" && old.kind === "directory") throw posixError("EISDIR", `${to} is a directory.`);
    if (kind !== "directory") return;
    if (old.kind !== "directory") throw posixError("ENOTDIR", `${to} is no directory.`);
    if (target === ROOT || countFilesIn(this.#on.host, this.#on.ns, target) > 0)
      throw posixError("ENOTEMPTY", `${to} is a directory that is not empty.`);
  }

  #copyRow(row: FileMeta, target: string, old: FileRow | undefined): void {
    const whole = readFileRow(this.#on.host, this.#on.ns, row.parent, row.name);
    if (whole === undefined) return;
    this.#on.bodies.referAgain(whole);
    this.put(target, old, whole);
  }

  /** All directories above a path that has no symlink in it. */
  #makeParents(path: string): void {
    const parent = parentOf(path);
    const row = this.lookup(parent);
    if (row?.kind === "directory") return;
    if (row !== undefined) throw posixError("ENOTDIR", `${parent} is no directory.`);
    this.#makeParents(parent);
    this.#putDirectory(parent);
  }

  #needParent(path: string): void {
    const parent = parentOf(path);
    if (this.lookup(parent)?.kind !== "directory")
      throw posixError("ENOENT", `There is no directory ${parent}. Make it first, or all at once with recursive.`);
  }

  #putDirectory(path: string): void {
    this.put(path, undefined, {
      ...{ kind: "directory", mode: DIRECTORY_MODE, size: 0, mtime: this.#on.host.clock.now() },
      ...{ target: null, hash: null, content: null },
    });
  }

  /** Writes an entry over `old`, in the caller's transaction. What it refers to was counted for it before. */
  put(
    path: string,
    old: Pick<FileRow, "since" | "hash"> | undefined,
    row: Omit<FileRow, "parent" | "name" | "since">,
  ): void {
    if (path.length > MAX_PATH) throw posixError("ENAMETOOLONG", `A path would have more than ${MAX_PATH} characters.`);
    const { version, newest } = this.#on.versions.open();
    const place = { parent: parentOf(path), name: nameOf(path) };
    const isKept = old !== undefined && old.since <= newest;
    if (isKept) closeFileRow(this.#on.host, this.#on.ns, place.parent, place.name, version);
    putFileRow(this.#on.host, this.#on.ns, { ...row, ...place, since: version });
    if (old !== undefined && !isKept) this.#on.bodies.release([old.hash]);
  }

  /** Deletes entries, in the caller's transaction. */
  dropAll(rows: Iterable<FileMeta>): void {
    let counter: Counter | undefined;
    for (const row of rows) this.drop(row, (counter ??= this.#on.versions.open()));
  }

  /** Deletes an entry, in the caller's transaction. */
  drop(row: FileMeta, { version, newest }: Counter = this.#on.versions.open()): void {
    if (row.since <= newest) return closeFileRow(this.#on.host, this.#on.ns, row.parent, row.name, version);
    deleteFileRow(this.#on.host, this.#on.ns, row.parent, row.name);
    this.#on.bodies.release([row.hash]);
  }

  /** Listeners hear of it once the transaction under way is committed. */
  tell(type: WorkspaceChange["type"], path: string, kind: FileKind): void {
    this.#on.host.afterTx((committed) => {
      if (committed) this.#on.changed({ type, path, kind });
    });
  }
}

function moved(row: FileMeta, from: string, to: string): string {
  const path = joinPath(row.parent, row.name);
  return to === ROOT ? path.slice(from.length) : to + path.slice(from === ROOT ? 0 : from.length);
}
