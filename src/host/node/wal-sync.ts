import fs from "node:fs";
import path from "node:path";
import { FOLDER_MODE } from "./private-files.ts";

/**
 * Syncs a database's write-ahead log from the thread pool: SQLite commits with `synchronous=NORMAL`, since a blocking sync would
 * stall every agent. Opens only the `-wal` file: closing the main file would drop SQLite's POSIX locks on it.
 */
export class WalSync {
  readonly #path: string;
  #fd: number | undefined;
  #running = 0;
  #forget = false;

  constructor(databasePath: string) {
    this.#path = `${databasePath}-wal`;
  }

  /** Resolves when what SQLite has written to the log is on the disk. No log: SQLite synced it when it closed. */
  async sync(): Promise<void> {
    this.#running++;
    try {
      this.#fd ??= openNow(this.#path);
      if (this.#fd !== undefined) await dataSync(this.#fd);
    } finally {
      this.#running--;
      if (this.#forget) this.forget();
    }
  }

  /** How long the log has been at most; 0: nobody has synced it. */
  get bytes(): number {
    return this.#fd === undefined ? 0 : fs.fstatSync(this.#fd).size;
  }

  /** Lets go of the descriptor, now or when the running sync is done. */
  forget(): void {
    this.#forget = this.#running > 0;
    if (this.#forget || this.#fd === undefined) return;
    fs.close(this.#fd, () => {});
    this.#fd = undefined;
  }
}

const running = new Map<string, Promise<void>>();
const queued = new Map<string, Promise<void>>();

/** Makes new, renamed and deleted entries of a directory survive the loss of power. Callers at the same time share it. */
export function syncDirectory(directory: string): Promise<void> {
  const now = running.get(directory);
  if (now === undefined) return startSync(directory);
  // The one that runs may have begun before this caller's change; the next one has not.
  let next = queued.get(directory);
  if (next === undefined) {
    const start = () => {
      queued.delete(directory);
      return startSync(directory);
    };
    queued.set(directory, (next = now.then(start, start)));
  }
  return next;
}

function startSync(directory: string): Promise<void> {
  const sync = syncNow(directory).finally(() => {
    if (running.get(directory) === sync) running.delete(directory);
  });
  running.set(directory, sync);
  return sync;
}

async function syncNow(directory: string): Promise<void> {
  const fd = openNow(directory, "r");
  if (fd === undefined) return;
  try {
    await new Promise<void>((resolve, reject) => {
      fs.fsync(fd, (error) => (error && error.code !== "EPERM" ? reject(error) : resolve()));
    });
  } finally {
    fs.close(fd, () => {});
  }
}

/** At once: SQLite opens its files so as well, and a way through the thread pool takes longer than that. */
function openNow(file: string, flags = "r+"): number | undefined {
  try {
    return fs.openSync(file, flags);
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return undefined;
    throw thrown;
  }
}

function dataSync(fd: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fs.fdatasync(fd, (error) => (error ? reject(error) : resolve()));
  });
}

/** Makes a directory of the host that survives a power loss, with those above it. Blocks only when there is something to make. */
export function makeDirectory(directory: string): void {
  const first = fs.mkdirSync(directory, { recursive: true, mode: FOLDER_MODE });
  if (first === undefined) return;
  const top = path.dirname(path.resolve(first));
  for (let above = path.dirname(path.resolve(directory)); above.startsWith(top); above = path.dirname(above)) {
    syncDirectoryNow(above);
    if (above === top) return;
  }
}

function syncDirectoryNow(directory: string): void {
  const fd = fs.openSync(directory, "r");
  try {
    fs.fsyncSync(fd);
  } catch (thrown) {
    if (!(thrown instanceof Error && "code" in thrown && thrown.code === "EPERM")) throw thrown;
  } finally {
    fs.closeSync(fd);
  }
}
