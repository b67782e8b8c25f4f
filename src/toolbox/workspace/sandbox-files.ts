import type { FileStat, SandboxFiles } from "../sandbox/sandbox.ts";
import { joinPath, normalizePath } from "../sandbox/path.ts";
import { posixError, posixNameOf } from "../sandbox/posix-error.ts";
import { concat } from "../../base/bytes.ts";
import { textOf } from "./text.ts";

/** The least that files can be made of: the methods of `WorkspaceLike`, sync or async. */
export interface MinimalFiles {
  readFileBytes(path: string): Uint8Array | null | Promise<Uint8Array | null>;
  writeFile(path: string, content: string): void | Promise<void>;
  readDir(path: string): Listing | Promise<Listing>;
  rm(path: string, options?: { readonly recursive?: boolean; readonly force?: boolean }): void | Promise<void>;
  mkdir?(path: string, options?: { readonly recursive?: boolean }): void | Promise<void>;
  stat(path: string): SomeStat | null | Promise<SomeStat | null>;
}

type Listing = readonly { readonly name: string; readonly type: FileStat["type"] }[];
type SomeStat = Pick<FileStat, "type" | "size"> & Partial<FileStat>;

const methods = [
  ...["readFileBytes", "writeFileBytes", "appendFileBytes", "readDir", "stat", "lstat", "mkdir", "rm", "rename"],
  ...["symlink", "readlink", "chmod", "utimes"],
];

/**
 * Any storage as a sandbox's files; a complete one is used as it is. Otherwise what is missing is emulated: renaming copies,
 * symlinks are refused (`EPERM`), modes and times are lost, and binary files need `writeFileBytes`.
 */
export function toSandboxFiles(storage: MinimalFiles): SandboxFiles {
  if (hasAll(storage)) return storage;
  const own = (name: string) => {
    const method: unknown = Reflect.get(storage, name);
    return typeof method === "function" ? method.bind(storage) : undefined;
  };
  const stat = async (path: string): Promise<FileStat | null> => {
    const found = await storage.stat(path);
    return found && { mtimeMs: 0, mode: found.type === "directory" ? 0o755 : 0o644, ...found };
  };
  const readFileBytes = async (path: string): Promise<Uint8Array> => {
    const bytes = await storage.readFileBytes(path);
    if (bytes === null) throw posixError("ENOENT", `There is no file ${path}.`);
    return bytes;
  };
  const writeFileBytes: SandboxFiles["writeFileBytes"] =
    own("writeFileBytes") ?? (async (path, bytes) => storage.writeFile(path, textOf(path, bytes)));
  const mkdir: SandboxFiles["mkdir"] = async (path, options) => storage.mkdir?.(path, options);
  const rm: SandboxFiles["rm"] = async (path, options) => storage.rm(path, options);
  const refuse = async (): Promise<never> => {
    throw posixError("EPERM", "This storage has no symlinks.");
  };
  const files: SandboxFiles = {
    ...{ stat, lstat: stat, readFileBytes, writeFileBytes, mkdir, rm },
    readDir: async (path) => storage.readDir(path),
    async appendFileBytes(path, bytes) {
      const before = await readFileBytes(path).catch((thrown: unknown) => {
        if (posixNameOf(thrown) === "ENOENT") return new Uint8Array();
        throw thrown;
      });
      await writeFileBytes(path, concat([before, bytes]));
    },
    async rename(from, to) {
      await copyAll(files, normalizePath(from), normalizePath(to));
      await rm(from, { recursive: true });
    },
    ...{ symlink: refuse, readlink: refuse, chmod: async () => {}, utimes: async () => {} },
  };
  return files;
}

async function copyAll(files: SandboxFiles, from: string, to: string): Promise<void> {
  const stat = await files.stat(from);
  if (stat === null) throw posixError("ENOENT", `There is no file or directory ${from}.`);
  if (to === from || to.startsWith(`${from}/`)) throw posixError("EINVAL", `${from} cannot be moved into itself.`);
  if (stat.type !== "directory") return files.writeFileBytes(to, await files.readFileBytes(from));
  await files.mkdir(to, { recursive: true });
  for (const { name } of await files.readDir(from)) await copyAll(files, joinPath(from, name), joinPath(to, name));
}

function hasAll(storage: object): storage is SandboxFiles {
  return methods.every((name) => typeof Reflect.get(storage, name) === "function");
}
