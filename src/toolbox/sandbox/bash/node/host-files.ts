import { type BufferEncoding, type FileContent, type FsStat, type IFileSystem, unsafeBytesFromLatin1 } from "just-bash";
import type { FileEntry, FileStat } from "../../sandbox.ts";
import { joinPath, resolveFrom } from "../../path.ts";
import { exactBytes } from "../file-calls.ts";
import type { FileCall } from "../protocol.ts";

type Ask = (call: FileCall) => Promise<unknown>;
type Encoded = { encoding?: BufferEncoding | null } | BufferEncoding;

/** The shell's view of a tree of files that the host keeps: each operation is one question to the host. */
export function hostFiles(mount: number, ask: Ask): IFileSystem {
  const call = (op: FileCall["op"], path: string, more: Partial<FileCall> = {}): Promise<unknown> =>
    ask({ kind: "file", op, mount, path, ...more });
  const read = async (path: string): Promise<Buffer> => Buffer.from((await call("read", path)) as Uint8Array);
  const stat = async (op: "stat" | "lstat", path: string): Promise<FsStat> => {
    const found = (await call(op, path)) as FileStat | null;
    if (found === null) throw new Error(`ENOENT: no such file or directory, ${op} '${path}'`);
    return shellStat(found);
  };
  const list = async (path: string): Promise<readonly FileEntry[]> => (await call("list", path)) as FileEntry[];
  const exists = async (path: string): Promise<boolean> => {
    try {
      return (await call("stat", path)) !== null;
    } catch {
      return false;
    }
  };
  const copy = async (from: string, to: string, recursive: boolean): Promise<void> => {
    const { isDirectory } = await stat("stat", from);
    if (!isDirectory) {
      await call("write", to, { bytes: exactBytes(await read(from)) });
      return;
    }
    if (!recursive) throw new Error(`EISDIR: is a directory, cp '${from}'`);
    await call("mkdir", to, { recursive: true });
    for (const { name } of await list(from)) await copy(joinPath(from, name), joinPath(to, name), true);
  };
  return {
    readFile: async (path, options) => (await read(path)).toString(encodingOf(options)),
    readFileBytes: async (path) => unsafeBytesFromLatin1((await read(path)).toString("latin1")),
    readFileBuffer: async (path) => new Uint8Array(await read(path)),
    writeFile: async (path, content, options) => void (await call("write", path, { bytes: bytesOf(content, options) })),
    appendFile: async (path, content, options) =>
      void (await call("append", path, { bytes: bytesOf(content, options) })),
    exists,
    stat: (path) => stat("stat", path),
    lstat: (path) => stat("lstat", path),
    mkdir: async (path, options) => void (await call("mkdir", path, { recursive: options?.recursive === true })),
    readdir: async (path) => (await list(path)).map(({ name }) => name).sort(),
    readdirWithFileTypes: async (path) =>
      (await list(path)).map(({ name, type }) => ({
        name,
        isFile: type === "file",
        isDirectory: type === "directory",
        isSymbolicLink: type === "symlink",
      })),
    rm: async (path, options) =>
      void (await call("rm", path, { recursive: options?.recursive === true, force: options?.force === true })),
    cp: (from, to, options) => copy(from, to, options?.recursive === true),
    mv: async (from, to) => void (await call("rename", from, { to })),
    resolvePath: resolveFrom,
    getAllPaths: () => [],
    chmod: async (path, mode) => void (await call("chmod", path, { number: mode })),
    symlink: async (target, path) => void (await call("symlink", path, { to: target })),
    link: async (_existing, path) => {
      throw new Error(`EPERM: hard links are not supported here, use ln -s or cp, '${path}'`);
    },
    readlink: async (path) => (await call("readlink", path)) as string,
    realpath: async (path) => (await call("realpath", path)) as string,
    utimes: async (path, _accessed, modified) => void (await call("utimes", path, { number: modified.getTime() })),
  };
}

function shellStat({ type, size, mtimeMs, mode }: FileStat): FsStat {
  return {
    isFile: type === "file",
    isDirectory: type === "directory",
    isSymbolicLink: type === "symlink",
    mode,
    size,
    mtime: new Date(mtimeMs),
  };
}

function encodingOf(options: Encoded | undefined): BufferEncoding {
  return (typeof options === "string" ? options : options?.encoding) ?? "utf8";
}

function bytesOf(content: FileContent, options: Encoded | undefined): Uint8Array {
  return exactBytes(typeof content === "string" ? Buffer.from(content, encodingOf(options)) : content);
}
