import { PerdureError } from "../../../base/error.ts";
import { cleanPath, joinPath, linkTarget, MAX_HOPS, partsOf, ROOT } from "../path.ts";
import { posixError } from "../posix-error.ts";
import type { SandboxFiles } from "../sandbox.ts";
import type { FileCall, FileOp } from "./protocol.ts";

/** One tree of files that a shell sees, and what it may do there. */
export interface BashMount {
  /** Absolute, one name deep (`/skill`), or `/`. */
  readonly path: string;
  readonly fs: SandboxFiles;
  readonly mode: "read" | "read-write";
}

const writes: ReadonlySet<FileOp> = new Set(["write", "append", "mkdir", "rm", "rename", "symlink", "chmod", "utimes"]);

/**
 * Does one file call of a shell. What a mount does not allow is refused here, on the host, whatever the worker thinks.
 * @throws PerdureError whose message begins with a POSIX name
 */
export async function answerFileCall(
  call: FileCall,
  mounts: readonly BashMount[],
  maxFileBytes: number,
): Promise<unknown> {
  const mount = mounts[call.mount];
  if (mount === undefined) throw new PerdureError("bad_input", `ENOENT: no such mount, '${call.path}'`);
  const path = cleanPath(call.path);
  if (writes.has(call.op) && mount.mode !== "read-write") {
    throw posixError("EROFS", `read-only file system, '${path}'`);
  }
  if (call.bytes !== undefined && call.bytes.length > maxFileBytes) throw tooLarge(path, maxFileBytes);
  const { fs } = mount;
  const bytes = call.bytes ?? new Uint8Array();
  switch (call.op) {
    case "read": {
      const stat = await fs.stat(path);
      if (stat !== null && stat.size > maxFileBytes) throw tooLarge(path, maxFileBytes);
      return exactBytes(await fs.readFileBytes(path));
    }
    case "write":
      return fs.writeFileBytes(path, bytes);
    case "append":
      return fs.appendFileBytes(path, bytes);
    case "list":
      // The entries of a workspace say more than is asked for here.
      return (await fs.readDir(path)).map(({ name, type }) => ({ name, type }));
    case "stat":
      return plainStat(await fs.stat(path));
    case "lstat":
      return plainStat(await fs.lstat(path));
    case "mkdir":
      return fs.mkdir(path, { recursive: call.recursive === true });
    case "rm":
      return fs.rm(path, { recursive: call.recursive === true, force: call.force === true });
    case "rename":
      return fs.rename(path, cleanPath(call.to ?? ""));
    case "symlink":
      return fs.symlink(call.to ?? "", path);
    case "readlink":
      return fs.readlink(path);
    case "realpath":
      return realPath(fs, path);
    case "chmod":
      return fs.chmod(path, call.number ?? 0);
    case "utimes":
      return fs.utimes(path, call.number ?? 0);
  }
}

/** Bytes with their own memory. Posting to a thread sends all the memory behind a view, and small Node buffers share one. */
export function exactBytes(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
}

function plainStat(stat: Awaited<ReturnType<SandboxFiles["stat"]>>): unknown {
  return stat === null ? null : { type: stat.type, size: stat.size, mtimeMs: stat.mtimeMs, mode: stat.mode };
}

/** The path without links, as `realpath` prints it. */
async function realPath(fs: SandboxFiles, path: string): Promise<string> {
  let ahead = partsOf(path);
  let done = ROOT;
  for (let links = 0; ahead.length > 0;) {
    const [name = "", ...rest] = ahead;
    const here = joinPath(done, name);
    const stat = await fs.lstat(here);
    if (stat === null) throw posixError("ENOENT", `no such file or directory, realpath '${path}'`);
    if (stat.type !== "symlink") [done, ahead] = [here, rest];
    else if (++links > MAX_HOPS) throw posixError("ELOOP", `too many links, realpath '${path}'`);
    else [done, ahead] = [ROOT, [...partsOf(linkTarget(here, await fs.readlink(here))), ...rest]];
  }
  return done;
}

function tooLarge(path: string, maxFileBytes: number): PerdureError {
  return posixError("EFBIG", `a shell reads and writes files of at most ${maxFileBytes} bytes, '${path}'`);
}
