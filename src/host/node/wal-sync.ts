import fs from "node:fs";

/**
 * Syncs a database's write-ahead log from the thread pool. SQLite commits with `synchronous=NORMAL`, which
 * leaves this to us: a blocking sync in the commit would stall every agent of the process.
 *
 * Only the `-wal` file is ever opened here. Opening and closing the main file would drop SQLite's own
 * POSIX locks on it.
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
      this.#fd ??= await openIfThere(this.#path);
      if (this.#fd !== undefined) await dataSync(this.#fd);
    } finally {
      this.#running--;
      if (this.#forget) this.forget();
    }
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
export function syncDirectory(path: string): Promise<void> {
  const now = running.get(path);
  if (now === undefined) return startSync(path);
  // The one that runs may have begun before this caller's change; the next one has not.
  let next = queued.get(path);
  if (next === undefined) {
    const start = () => {
      queued.delete(path);
      return startSync(path);
    };
    queued.set(path, (next = now.then(start, start)));
  }
  return next;
}

function startSync(path: string): Promise<void> {
  const sync = syncNow(path).finally(() => {
    if (running.get(path) === sync) running.delete(path);
  });
  running.set(path, sync);
  return sync;
}

async function syncNow(path: string): Promise<void> {
  const fd = await openIfThere(path, "r");
  if (fd === undefined) return;
  try {
    await new Promise<void>((resolve, reject) => {
      fs.fsync(fd, (error) => (error && error.code !== "EPERM" ? reject(error) : resolve()));
    });
  } finally {
    fs.close(fd, () => {});
  }
}

function openIfThere(path: string, flags = "r+"): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    fs.open(path, flags, (error, fd) => {
      if (error === null) resolve(fd);
      else if (error.code === "ENOENT") resolve(undefined);
      else reject(error);
    });
  });
}

function dataSync(fd: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fs.fdatasync(fd, (error) => (error ? reject(error) : resolve()));
  });
}
