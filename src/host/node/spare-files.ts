import fs from "node:fs";
import path from "node:path";
import { FILE_MODE, FOLDER_MODE } from "./private-files.ts";
import { makeDirectory, syncDirectory } from "./wal-sync.ts";

/** How many are kept ready at first, and at most when they run out often. */
const MIN_SPARES = 32;
const MAX_SPARES = 512;
/** Made side by side: the disk syncs a few files about as fast as one. */
const FILL_AT_ONCE = 8;

/**
 * Ready-made, synced database files: an agent's first write renames one, without migrations or a sync. Made ahead, since a file
 * must be synced before SQLite has it (else it throws the log away), and may not be opened from here afterwards.
 */
export class SpareFiles {
  readonly #dir: string;
  readonly #bytes: Uint8Array;
  readonly #ready: string[] = [];
  #target = MIN_SPARES;
  #next = 0;
  #filling: Promise<void> | undefined;
  #closed = false;
  /** Databases whose entry in their directory may not survive yet. They may leave memory before that is asked for. */
  readonly #unsynced = new Set<string>();

  constructor(dir: string, bytes: Uint8Array) {
    this.#dir = dir;
    this.#bytes = bytes;
    fs.rmSync(dir, { recursive: true, force: true });
    fs.mkdirSync(dir, { recursive: true, mode: FOLDER_MODE });
    this.#refill();
  }

  /** Puts a fresh database at `destination`; it is there after the loss of power only after {@link SpareFiles.settle}. */
  take(destination: string): void {
    makeDirectory(path.dirname(destination));
    const spare = this.#ready.pop() ?? this.#makeNow();
    fs.renameSync(spare, destination);
    this.#unsynced.add(destination);
    this.#refill();
  }

  /** Makes sure that the database at `file` is found after the loss of power. */
  async settle(file: string): Promise<void> {
    if (!this.#unsynced.has(file)) return;
    await syncDirectory(path.dirname(file));
    this.#unsynced.delete(file);
  }

  /** The file was deleted. */
  forget(file: string): void {
    this.#unsynced.delete(file);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#filling;
    fs.rmSync(this.#dir, { recursive: true, force: true });
  }

  #refill(): void {
    if (this.#ready.length > this.#target / 2) return;
    this.#filling ??= this.#fill().finally(() => {
      this.#filling = undefined;
    });
  }

  /** A full disk only means fewer spares: the write that needs one reports it. */
  async #fill(): Promise<void> {
    while (!this.#closed && this.#ready.length < this.#target) {
      const missing = Math.min(this.#target - this.#ready.length, FILL_AT_ONCE);
      try {
        await Promise.all(Array.from({ length: missing }, () => this.#make()));
      } catch {
        return;
      }
    }
  }

  async #make(): Promise<void> {
    const name = path.join(this.#dir, `${this.#next++}.db`);
    const file = await fs.promises.open(name, "wx", FILE_MODE);
    try {
      await file.writeFile(this.#bytes);
      await file.datasync();
    } finally {
      await file.close();
    }
    this.#ready.push(name);
  }

  #makeNow(): string {
    this.#target = Math.min(this.#target * 2, MAX_SPARES);
    const name = path.join(this.#dir, `${this.#next++}.db`);
    const fd = fs.openSync(name, "wx", FILE_MODE);
    try {
      fs.writeSync(fd, this.#bytes);
      fs.fdatasyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
    return name;
  }
}
