import { concat } from "../../base/bytes.ts";
import { cleanPath, isWithin, joinPath, linkTarget, MAX_HOPS, nameOf, parentOf, partsOf, ROOT } from "./path.ts";
import { type PosixName, posixError } from "./posix-error.ts";
import type { FileEntry, FileStat, SandboxFiles } from "./sandbox.ts";

/** How much {@link MemoryFiles} holds. */
export interface MemoryFilesOptions {
  /** What is there at the beginning, by absolute path. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** All bytes together. Default 16 MiB. */
  readonly maxBytes?: number;
  /** Files, directories and links together. Default 2,000. */
  readonly maxEntries?: number;
}

const DEFAULT_BYTES = 16 << 20;
const DEFAULT_ENTRIES = 2_000;
const FILE_MODE = 0o644;
const DIRECTORY_MODE = 0o755;
const LINK_MODE = 0o777;

type Node =
  | { readonly type: "file"; bytes: Uint8Array; mtimeMs: number; mode: number }
  | { readonly type: "directory"; mtimeMs: number; mode: number }
  | { readonly type: "symlink"; readonly target: string; mtimeMs: number; mode: number };

/** Bounded files in memory, for guests that need a place and no workspace: scratch, tests, a script's input and output. */
export class MemoryFiles implements SandboxFiles {
  /** By their paths, which lead through no links. */
  readonly #nodes = new Map<string, Node>([[ROOT, directory()]]);
  readonly #maxBytes: number;
  readonly #maxEntries: number;
  #bytes = 0;

  constructor(options: MemoryFilesOptions = {}) {
    this.#maxBytes = options.maxBytes ?? DEFAULT_BYTES;
    this.#maxEntries = options.maxEntries ?? DEFAULT_ENTRIES;
    for (const [path, content] of Object.entries(options.files ?? {})) {
      this.#put(path, typeof content === "string" ? new TextEncoder().encode(content) : content);
    }
  }

  /** Every file under `path`, in the order of their paths. Links are not followed. */
  files(path = "/"): { readonly path: string; readonly bytes: Uint8Array }[] {
    return this.#below(this.#need(path, true).at)
      .flatMap(([at, node]) => (node.type === "file" ? [{ path: at, bytes: node.bytes }] : []))
      .sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  async readFileBytes(path: string): Promise<Uint8Array> {
    return this.#read(path).slice();
  }

  async writeFileBytes(path: string, bytes: Uint8Array): Promise<void> {
    this.#put(path, bytes);
  }

  async appendFileBytes(path: string, bytes: Uint8Array): Promise<void> {
    const isThere = this.#find(path, true).node !== undefined;
    this.#put(path, isThere ? concat([this.#read(path), bytes]) : bytes);
  }

  async readDir(path: string): Promise<readonly FileEntry[]> {
    const { at, node } = this.#need(path, true);
    if (node.type !== "directory") throw fault("ENOTDIR", "not a directory", path);
    const inside = [...this.#nodes].filter(([one]) => one !== ROOT && parentOf(one) === at);
    return inside.map(([one, { type }]) => ({ name: nameOf(one), type }));
  }

  async stat(path: string): Promise<FileStat | null> {
    return statOf(this.#find(path, true).node);
  }

  async lstat(path: string): Promise<FileStat | null> {
    return statOf(this.#find(path, false).node);
  }

  async mkdir(path: string, options: { readonly recursive?: boolean } = {}): Promise<void> {
    const { at, node } = this.#find(path, true);
    if (node?.type === "directory" && options.recursive === true) return;
    if (node !== undefined) throw fault("EEXIST", "file exists", path);
    this.#add(at, directory(), options.recursive === true, path);
  }

  async rm(path: string, options: { readonly recursive?: boolean; readonly force?: boolean } = {}): Promise<void> {
    if (options.force === true && this.#find(path, false).node === undefined) return;
    const { at } = this.#need(path, false);
    if (at === ROOT) throw fault("EPERM", "the root cannot be removed", path);
    if (this.#below(at).length > 1 && options.recursive !== true) throw fault("ENOTEMPTY", "directory not empty", path);
    this.#drop(at);
  }

  async rename(from: string, to: string): Promise<void> {
    const { at: source, node } = this.#need(from, false);
    const { at: target, node: there } = this.#find(to, false);
    if (source === target) return;
    if (isWithin(target, source)) throw fault("EINVAL", "a directory cannot be moved into itself", to);
    if (there?.type === "directory") {
      if (node.type !== "directory") throw fault("EISDIR", "is a directory", to);
      if (this.#below(target).length > 1) throw fault("ENOTEMPTY", "directory not empty", to);
    }
    this.#openParent(target, false, to);
    this.#drop(target);
    for (const [path, one] of this.#below(source)) {
      this.#nodes.delete(path);
      this.#nodes.set(target + path.slice(source.length), one);
    }
  }

  async symlink(target: string, path: string): Promise<void> {
    const { at, node } = this.#find(path, false);
    if (node !== undefined) throw fault("EEXIST", "file exists", path);
    this.#add(at, { type: "symlink", target, mtimeMs: Date.now(), mode: LINK_MODE }, false, path);
  }

  async readlink(path: string): Promise<string> {
    const { node } = this.#need(path, false);
    if (node.type !== "symlink") throw fault("EINVAL", "not a link", path);
    return node.target;
  }

  async chmod(path: string, mode: number): Promise<void> {
    this.#need(path, true).node.mode = mode & 0o777;
  }

  async utimes(path: string, mtimeMs: number): Promise<void> {
    this.#need(path, true).node.mtimeMs = mtimeMs;
  }

  #read(path: string): Uint8Array {
    const { node } = this.#need(path, true);
    if (node.type !== "file") throw fault("EISDIR", "is a directory", path);
    return node.bytes;
  }

  #put(path: string, bytes: Uint8Array): void {
    const { at, node } = this.#find(path, true);
    if (node?.type === "directory") throw fault("EISDIR", "is a directory", path);
    const grown = bytes.length - (node?.type === "file" ? node.bytes.length : 0);
    if (this.#bytes + grown > this.#maxBytes) throw fault("ENOSPC", `only ${this.#maxBytes} bytes fit here`, path);
    const file: Node = { type: "file", bytes: bytes.slice(), mtimeMs: Date.now(), mode: node?.mode ?? FILE_MODE };
    if (node === undefined) this.#add(at, file, true, path);
    else this.#nodes.set(at, file);
    this.#bytes += grown;
  }

  #add(at: string, node: Node, makeParents: boolean, path: string): void {
    this.#openParent(at, makeParents, path).mtimeMs = Date.now();
    // The root is no entry.
    if (this.#nodes.size > this.#maxEntries) throw fault("ENOSPC", `only ${this.#maxEntries} entries fit here`, path);
    this.#nodes.set(at, node);
  }

  #drop(at: string): void {
    for (const [path, node] of this.#below(at)) {
      if (node.type === "file") this.#bytes -= node.bytes.length;
      this.#nodes.delete(path);
    }
  }

  /** What is there, and all that is in it. */
  #below(at: string): [path: string, node: Node][] {
    return [...this.#nodes].filter(([path]) => isWithin(path, at));
  }

  #openParent(at: string, make: boolean, path: string): Node {
    const above = parentOf(at);
    const node = this.#nodes.get(above);
    if (node?.type === "directory") return node;
    if (node !== undefined) throw fault("ENOTDIR", "not a directory", path);
    if (!make) throw fault("ENOENT", "no such file or directory", path);
    const made = directory();
    this.#add(above, made, true, path);
    return made;
  }

  #need(path: string, follow: boolean): { at: string; node: Node } {
    const { at, node } = this.#find(path, follow);
    if (node === undefined) throw fault("ENOENT", "no such file or directory", path);
    return { at, node };
  }

  /** What is at a path, and where that is when links on the way are followed; `follow`: one at its end, too. */
  #find(path: string, follow: boolean): { at: string; node: Node | undefined } {
    let at = cleanPath(path);
    for (let hops = 0; hops <= MAX_HOPS; hops++) {
      const next = this.#throughLink(at, follow);
      if (next === undefined) return { at, node: this.#nodes.get(at) };
      at = next;
    }
    throw fault("ELOOP", "too many links", path);
  }

  /** Where the first link of a path leads; undefined for a path without one. */
  #throughLink(path: string, follow: boolean): string | undefined {
    const parts = partsOf(path);
    let at = ROOT;
    for (const [index, part] of parts.entries()) {
      at = joinPath(at, part);
      const node = this.#nodes.get(at);
      const rest = parts.slice(index + 1);
      if (node?.type === "symlink" && (follow || rest.length > 0))
        return linkTarget(at, `${linkTarget(at, node.target)}/${rest.join("/")}`);
    }
    return undefined;
  }
}

function directory(): Node {
  return { type: "directory", mtimeMs: Date.now(), mode: DIRECTORY_MODE };
}

function statOf(node: Node | undefined): FileStat | null {
  if (node === undefined) return null;
  const { type, mtimeMs, mode } = node;
  return { type, size: node.type === "file" ? node.bytes.length : 0, mtimeMs, mode };
}

function fault(name: PosixName, what: string, path: string): Error {
  return posixError(name, `${what}, '${path}'`);
}
