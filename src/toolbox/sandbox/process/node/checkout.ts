import { createHash } from "node:crypto";
import { chmod, lchown, lstat, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PerdureError } from "../../../../base/error.ts";
import type { SandboxFiles } from "../../sandbox.ts";
import { joinPath } from "../../path.ts";
import type { CheckoutBounds } from "../files-report.ts";
import { JAIL_WORKSPACE } from "./jail-paths.ts";

/** What a path was when the run began. `stamp` changes with every write, and the guest cannot set it. */
export type Original =
  | { readonly type: "file"; readonly hash: string; readonly mode: number; readonly stamp: string }
  | { readonly type: "directory" }
  | { readonly type: "symlink"; readonly target: string };

/** Whose the copies are on the host. */
interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Copies files into a folder of the host. @returns what was copied, by path; the root is not in it
 * @throws PerdureError `limit` when there is more than the bounds allow, or what a file system cannot hold
 */
export async function checkOut(
  files: SandboxFiles,
  folder: string,
  bounds: CheckoutBounds,
  owner: Owner | undefined,
  signal?: AbortSignal,
): Promise<Map<string, Original>> {
  const originals = new Map<string, Original>();
  let bytes = 0;
  const own = async (path: string) => {
    if (owner !== undefined) await lchown(path, owner.uid, owner.gid);
  };
  const copy = async (path: string, type: Original["type"]): Promise<void> => {
    const target = join(folder, path);
    if (type === "directory") {
      await mkdir(target);
      await own(target);
      originals.set(path, { type });
      return;
    }
    if (type === "symlink") {
      const leads = toJail(await files.readlink(path));
      await symlink(leads, target);
      await own(target);
      originals.set(path, { type, target: leads });
      return;
    }
    const size = (await files.lstat(path))?.size ?? 0;
    if (size > bounds.fileBytes || bytes + size > bounds.bytes) throw tooMuch(path, size, bounds);
    const content = await files.readFileBytes(path);
    bytes += content.byteLength;
    const mode = ((await files.lstat(path))?.mode ?? 0o644) & 0o777;
    await writeFile(target, content, { flag: "wx" });
    // The copy can always be read and written by the run; of the mode only "may be run" is kept.
    await chmod(target, 0o644 | (mode & 0o111));
    await own(target);
    originals.set(path, { type, hash: hashOf(content), mode: 0o644 | (mode & 0o111), stamp: await stampOf(target) });
  };

  await own(folder);
  const folders = ["/"];
  for (let here = folders.shift(); here !== undefined; here = folders.shift()) {
    for (const { name, type } of await files.readDir(here)) {
      signal?.throwIfAborted();
      const path = joinPath(here, name);
      checkName(name, path);
      if (originals.size >= bounds.files) {
        throw new PerdureError(
          "limit",
          `The workspace has more than ${bounds.files} files and folders, too many to copy into a jail. Remove some.`,
        );
      }
      await copy(path, type);
      if (type === "directory") folders.push(path);
    }
  }
  return originals;
}

/** The state of a file of the host, in one text. */
export async function stampOf(path: string): Promise<string> {
  const { ino, size, ctimeNs } = await lstat(path, { bigint: true });
  return `${ino} ${size} ${ctimeNs}`;
}

export function hashOf(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Where a link of the workspace leads in the jail. */
export function toJail(target: string): string {
  return target.startsWith("/") ? JAIL_WORKSPACE + (target === "/" ? "" : target) : target;
}

function checkName(name: string, path: string): void {
  const bad = name === "" || name === "." || name === ".." || name.includes("/") || name.includes("\0");
  if (bad || Buffer.byteLength(name) > 255) {
    throw new PerdureError("limit", `The name of ${JSON.stringify(path)} cannot be used on a disk. Rename it.`);
  }
}

function tooMuch(path: string, size: number, { bytes, fileBytes }: CheckoutBounds): PerdureError {
  const bound =
    size > fileBytes
      ? `${path} has ${size} bytes, more than ${fileBytes}`
      : `the workspace has more than ${bytes} bytes`;
  return new PerdureError("limit", `Too large to copy into a jail: ${bound}. Remove or shorten files.`);
}
