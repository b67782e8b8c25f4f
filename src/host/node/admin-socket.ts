import fs from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { adminSocketOf, checkSocketOwner } from "./admin-place.ts";
import { FILE_MODE, FOLDER_MODE } from "./private-files.ts";
import { toListener } from "./to-request.ts";

/** Where a socket is made before its mode is right, inside the directory. */
const DRAFT = ".admin";

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
