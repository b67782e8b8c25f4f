import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { PerdureError } from "../../base/error.ts";

/** The longest address of a socket that every system takes, in bytes. */
const MAX_ADDRESS_BYTES = 100;
const SOCKET = "admin.sock";
const OTHERS = 0o077;

/**
 * Where the host of a directory listens for operators. In the directory; where that is too long for a socket's address, in a
 * folder of this user for temporary things. Undefined on systems that have no sockets with a file's rights.
 */
export function adminSocketOf(dir: string): string | undefined {
  if (process.platform === "win32") return undefined;
  const real = realPath(dir);
  const inside = path.join(real, SOCKET);
  if (Buffer.byteLength(inside) <= MAX_ADDRESS_BYTES) return inside;
  const hash = createHash("sha256").update(real).digest("hex").slice(0, 16);
  return path.join(os.tmpdir(), `perdure-${os.userInfo().uid}`, `${hash}.sock`);
}

/**
 * Whether a socket is ours to talk to. In a folder that all users share, another could have put one there. @throws PerdureError
 * `not_allowed`
 */
export function checkSocketOwner(socket: string): void {
  const folder = path.dirname(socket);
  if (path.basename(socket) === SOCKET) return;
  const { uid, mode } = fs.lstatSync(folder);
  if (uid === os.userInfo().uid && (mode & OTHERS) === 0) return;
  throw new PerdureError(
    "not_allowed",
    `${folder} belongs to somebody else, or others may write there. Use a shorter path as the directory of the host.`,
  );
}

function realPath(dir: string): string {
  try {
    return fs.realpathSync(dir);
  } catch {
    return path.resolve(dir);
  }
}
