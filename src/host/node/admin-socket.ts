import { createHash } from "node:crypto";
import fs from "node:fs";
import { createServer } from "node:http";
import os from "node:os";
import path from "node:path";
import { PerdureError } from "../../base/error.ts";
import { FILE_MODE, FOLDER_MODE } from "./private-files.ts";
import { toListener } from "./to-request.ts";

/** The longest address of a socket that every system takes, in bytes. */
const MAX_ADDRESS_BYTES = 100;
const SOCKET = "admin.sock";
/** Where a socket is made before its mode is right, inside the directory. */
const DRAFT = ".admin";
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
function checkSocketOwner(socket: string): void {
  const folder = path.dirname(socket);
  if (path.basename(socket) === SOCKET) return;
  const { uid, mode } = fs.lstatSync(folder);
  if (uid === os.userInfo().uid && (mode & OTHERS) === 0) return;
  throw new PerdureError(
    "not_allowed",
    `${folder} belongs to somebody else, or others may write there. Use a shorter path as the directory of the host.`,
  );
}

/** A listener for operators on this machine, whom the file system lets in. */
interface AdminSocket {
  close(): void;
}

/**
 * Listens at the socket of a directory whose lock is held. Whoever may open the file may do everything. Never throws: without it
 * the host does its work all the same. @param failed is told why there is none
 */
export function listenAt(
  dir: string,
  answer: (request: Request) => Promise<Response>,
  failed: (thrown: unknown) => void,
): AdminSocket | undefined {
  const at = adminSocketOf(dir);
  if (at === undefined) return undefined;
  const server = createServer(toListener(answer));
  // An idle host does not keep its process running, nor does somebody who watches it.
  server.on("connection", (socket) => socket.unref());
  server.unref();
  server.on("error", failed);
  // A stream of events lasts as long as it is wanted.
  server.requestTimeout = 0;
  const draft = path.join(path.dirname(at), DRAFT);
  try {
    fs.mkdirSync(path.dirname(at), { recursive: true, mode: FOLDER_MODE });
    checkSocketOwner(at);
    fs.rmSync(draft, { recursive: true, force: true });
    fs.mkdirSync(draft, { mode: FOLDER_MODE });
    const made = path.join(draft, "s");
    server.listen(made);
    // Nobody else can reach it before it has its mode: a socket is made with that of the process's umask.
    fs.chmodSync(made, FILE_MODE);
    fs.renameSync(made, at);
  } catch (thrown) {
    server.close();
    failed(thrown);
    return undefined;
  } finally {
    fs.rmSync(draft, { recursive: true, force: true });
  }
  return {
    close() {
      fs.rmSync(at, { force: true });
      server.close();
      server.closeAllConnections();
    },
  };
}

function realPath(dir: string): string {
  try {
    return fs.realpathSync(dir);
  } catch {
    return path.resolve(dir);
  }
}
