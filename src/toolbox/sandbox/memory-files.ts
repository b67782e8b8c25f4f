import { PerdureError, type PerdureErrorCode } from "../../base/error.ts";
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
const MAX_LINKS = 40;
const MAX_PATH = 4_096;
const FILE_MODE = 0o644;
const DIRECTORY_MODE = 0o755;

type Node =
  | { readonly type: "file"; bytes: Uint8Array; mtimeMs: number; mode: number }
  | { readonly type: "directory"; readonly names: Map<string, Node>; mtimeMs: number; mode: number }
  | { readonly type: "symlink"; readonly target: string; mtimeMs: number; mode: number };
type Directory = Extract<Node, { type: "directory" }>;

/**
 * Files in memory, for guests that need a place and no workspace: scratch, tests, what a script reads and what it
 * leaves. Holds no more than it was told to.
 */
export class MemoryFiles implements SandboxFiles {
  readonly #root: Directory = directory();
  readonly #maxBytes: number;
  readonly #maxEntries: number;
  #bytes = 0;
  #entries = 0;

  constructor(options: MemoryFilesOptions = {}) {
    this.#maxBytes = options.maxBytes ?? DEFAULT_BYTES;
    this.#maxEntries = options.maxEntries ?? DEFAULT_ENTRIES;
    for (const [path, content] of Object.entries(options.files ?? {})) {
      this.#put(path, typeof content === "string" ? new TextEncoder().encode(content) : content);
    }
  }

  /** Every file under `path`, in the order of their paths. Links are not followed. */
  files(path = "/"): { readonly path: string; readonly bytes: Uint8Array }[] {
    const found: { path: string; bytes: Uint8Array }[] = [];
    const walk = (node: Node, at: string): void => {
      if (node.type === "file") found.push({ path: at, bytes: node.bytes });
      if (node.type !== "directory") return;
      for (const [name, child] of node.names) walk(child, `${at === "/" ? "" : at}/${name}`);
    };
    const parts = cleanPath(path);
    walk(this.#at(path, true), `/${parts.join("/")}`);
    return found.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  async readFileBytes(path: string): Promise<Uint8Array> {
    return this.#file(path).bytes.slice();
  }

  async writeFileBytes(path: string, bytes: Uint8Array): Promise<void> {
    this.#put(path, bytes);
  }

  async appendFileBytes(path: string, bytes: Uint8Array): Promise<void> {
    const before = this.#find(path, true) === undefined ? new Uint8Array() : this.#file(path).bytes;
    const joined = new Uint8Array(before.length + bytes.length);
    joined.set(before);
    joined.set(bytes, before.length);
    this.#put(path, joined);
  }

  async readDir(path: string): Promise<readonly FileEntry[]> {
    const node = this.#at(path, true);
    if (node.type !== "directory") throw fault("ENOTDIR", "not a directory", path);
    return [...node.names].map(([name, { type }]) => ({ name, type }));
  }

  async stat(path: string): Promise<FileStat | null> {
    return statOf(this.#find(path, true));
  }

  async lstat(path: string): Promise<FileStat | null> {
    return statOf(this.#find(path, false));
  }

  async mkdir(path: string, options: { readonly recursive?: boolean } = {}): Promise<void> {
    const there = this.#find(path, true);
    if (there?.type === "directory" && options.recursive === true) return;
    if (there !== undefined) throw fault("EEXIST", "file exists", path);
    const [parent, name] = this.#parent(path, options.recursive === true);
    this.#add(parent, name, directory());
  }

  async rm(path: string, options: { readonly recursive?: boolean; readonly force?: boolean } = {}): Promise<void> {
    const node = this.#find(path, false);
    if (node === undefined) {
      if (options.force === true) return;
      throw fault("ENOENT", "no such file or directory", path);
    }
    if (node === this.#root) throw fault("EPERM", "the root cannot be removed", path);
    if (node.type === "directory" && node.names.size > 0 && options.recursive !== true) {
      throw fault("ENOTEMPTY", "directory not empty", path);
    }
    const [parent, name] = this.#parent(path, false);
    parent.names.delete(name);
    this.#drop(node);
  }

  async rename(from: string, to: string): Promise<void> {
    const node = this.#at(from, false);
    const [source, oldName] = this.#parent(from, false);
    const inside = `/${cleanPath(to).join("/")}`.startsWith(`/${cleanPath(from).join("/")}/`);
    if (inside) throw fault("EINVAL", "a directory cannot be moved into itself", to);
    const there = this.#find(to, false);
    if (there === node) return;
    if (there?.type === "directory") {
      if (node.type !== "directory") throw fault("EISDIR", "is a directory", to);
      if (there.names.size > 0) throw fault("ENOTEMPTY", "directory not empty", to);
    }
    const [target, newName] = this.#parent(to, false);
    if (there !== undefined) this.#drop(there);
    source.names.delete(oldName);
    target.names.set(newName, node);
  }

  async symlink(target: string, path: string): Promise<void> {
    if (this.#find(path, false) !== undefined) throw fault("EEXIST", "file exists", path);
    const [parent, name] = this.#parent(path, false);
    this.#add(parent, name, { type: "symlink", target, mtimeMs: Date.now(), mode: 0o777 });
  }

  async readlink(path: string): Promise<string> {
    const node = this.#at(path, false);
    if (node.type !== "symlink") throw fault("EINVAL", "not a link", path);
    return node.target;
  }

  async chmod(path: string, mode: number): Promise<void> {
    this.#at(path, true).mode = mode & 0o777;
  }

  async utimes(path: string, mtimeMs: number): Promise<void> {
    this.#at(path, true).mtimeMs = mtimeMs;
  }

  #put(path: string, bytes: Uint8Array): void {
    const there = this.#find(path, true);
    if (there?.type === "directory") throw fault("EISDIR", "is a directory", path);
    const grown = bytes.length - (there?.type === "file" ? there.bytes.length : 0);
    if (this.#bytes + grown > this.#maxBytes) throw fault("ENOSPC", `only ${this.#maxBytes} bytes fit here`, path);
    if (there?.type === "file") {
      there.bytes = bytes.slice();
      there.mtimeMs = Date.now();
    } else {
      const [parent, name] = this.#parent(path, true);
      this.#add(parent, name, { type: "file", bytes: bytes.slice(), mtimeMs: Date.now(), mode: FILE_MODE });
    }
    this.#bytes += grown;
  }

  #add(parent: Directory, name: string, node: Node): void {
    if (this.#entries >= this.#maxEntries) throw fault("ENOSPC", `only ${this.#maxEntries} entries fit here`, name);
    this.#entries++;
    parent.names.set(name, node);
    parent.mtimeMs = Date.now();
  }

  #drop(node: Node): void {
    this.#entries--;
    if (node.type === "file") this.#bytes -= node.bytes.length;
    if (node.type === "directory") for (const child of node.names.values()) this.#drop(child);
  }

  #file(path: string): Extract<Node, { type: "file" }> {
    const node = this.#at(path, true);
    if (node.type !== "file") throw fault("EISDIR", "is a directory", path);
    return node;
  }

  #at(path: string, follow: boolean): Node {
    const node = this.#find(path, follow);
    if (node === undefined) throw fault("ENOENT", "no such file or directory", path);
    return node;
  }

  /** The directory that a path is in, and its last name there. Links on the way are followed. */
  #parent(path: string, make: boolean): [Directory, string] {
    const parts = cleanPath(path);
    const name = parts.pop();
    if (name === undefined) throw fault("EEXIST", "the root is always there", path);
    const above = `/${parts.join("/")}`;
    const node = this.#find(above, true);
    if (node?.type === "directory") return [node, name];
    if (node !== undefined) throw fault("ENOTDIR", "not a directory", path);
    if (!make) throw fault("ENOENT", "no such file or directory", path);
    const [parent, last] = this.#parent(above, true);
    const made = directory();
    this.#add(parent, last, made);
    return [made, name];
  }

  #find(path: string, follow: boolean): Node | undefined {
    let parts = cleanPath(path);
    let links = 0;
    let trail: Node[] = [this.#root];
    for (let index = 0; index < parts.length; index++) {
      const here = trail.at(-1);
      const part = parts[index];
      if (part === "..") {
        if (trail.length > 1) trail.pop();
        continue;
      }
      const next = here?.type === "directory" && part !== undefined ? here.names.get(part) : undefined;
      if (next === undefined) return undefined;
      if (next.type !== "symlink" || (!follow && index === parts.length - 1)) {
        trail.push(next);
        continue;
      }
      if (++links > MAX_LINKS) throw fault("ELOOP", "too many links", path);
      parts = [...next.target.split("/").filter(isName), ...parts.slice(index + 1)];
      if (next.target.startsWith("/")) trail = [this.#root];
      index = -1;
    }
    return trail.at(-1);
  }
}

/** The parts of an absolute path, without `.` and `..`. @throws PerdureError `bad_input` */
export function cleanPath(path: string): string[] {
  if (!path.startsWith("/") || path.includes("\0")) throw fault("EINVAL", "not an absolute path", path);
  if (path.length > MAX_PATH) throw fault("ENAMETOOLONG", "the path is too long", path.slice(0, 80));
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (isName(part)) parts.push(part);
  }
  return parts;
}

function isName(part: string): boolean {
  return part !== "" && part !== ".";
}

function directory(): Directory {
  return { type: "directory", names: new Map(), mtimeMs: Date.now(), mode: DIRECTORY_MODE };
}

function statOf(node: Node | undefined): FileStat | null {
  if (node === undefined) return null;
  const { type, mtimeMs, mode } = node;
  return { type, size: node.type === "file" ? node.bytes.length : 0, mtimeMs, mode };
}

const codes: Readonly<Record<string, PerdureErrorCode>> = {
  ENOENT: "not_found",
  EEXIST: "conflict",
  ENOSPC: "limit",
  EPERM: "not_allowed",
};

function fault(name: string, what: string, path: string): PerdureError {
  return new PerdureError(codes[name] ?? "bad_input", `${name}: ${what}, '${path}'`);
}
