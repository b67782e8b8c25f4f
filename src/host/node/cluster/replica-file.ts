import fs from "node:fs";
import path from "node:path";
import type Database from "better-sqlite3";
import type { PerdureError } from "../../../base/error.ts";
import type { WriteLevel } from "../../../port.ts";
import type { AgentFile, OpenedFile } from "../handle-pool.ts";
import { migrateAgent, openSqlite } from "../open-sqlite.ts";
import type { StoredAgent } from "./engine.ts";
import { applyDeltas, packBytes, packDelta, readLog, unpackBytes } from "./page-delta.ts";

/** How long a commit of level `commit` may wait for others before it is sent. */
const COMMIT_WINDOW_MS = 20;
/** Deltas are folded into a base when they hold more than this, and than a part of the database. */
const FOLD_BYTES = 1024 * 1024;
const FOLD_PART = 4;
const BASE_PART_BYTES = 4 * 1024 * 1024;

/** Where deltas go. Each resolves when it is in the database; in the order of the calls. */
interface DeltaSink {
  append(seq: number, pages: Buffer): Promise<void>;
  /** Replaces all up to `seq`. What fails is tried again with a later delta. */
  fold(seq: number, parts: AsyncIterable<Uint8Array>): Promise<void>;
}

/**
 * An agent's database as a cache: SQLite works on a file here, and what its commits changed is sent, page by page, to where it is
 * kept. The file lives as long as the claim on its root.
 *
 * The log is read between synchronous sections and up to its last commit, so whatever is sent is whole. SQLite never moves the log
 * by itself: what it has not handed over here would be lost to us.
 */
export class ReplicaFile implements AgentFile {
  readonly isCache = true;
  /** The agent above lists this one; nothing is sent before it does. */
  listed: Promise<void> | undefined;
  readonly #path: string;
  readonly #sink: DeltaSink;
  readonly #template: Uint8Array;
  readonly #maxBytes: number;
  readonly #foldBytes: number;
  #there = false;
  #db: Database.Database | undefined;
  #pageBytes = 1;
  /** How far the log has been read. */
  #offset = 0;
  #seq = 0;
  /** Read from the log, and not yet handed on; oldest first. */
  #taken: Buffer[] = [];
  #sent: Promise<void> = Promise.resolve();
  #shipping = false;
  #timer: NodeJS.Timeout | undefined;
  #deltaBytes = 0;
  #fileBytes = 0;
  #folding: Promise<boolean> | undefined;
  /** Counts what changes the main file. */
  #moves = 0;
  #dead: PerdureError | undefined;

  constructor(
    file: string,
    sink: DeltaSink,
    template: Uint8Array,
    { maxBytes, foldBytes = FOLD_BYTES }: { readonly maxBytes: number; readonly foldBytes?: number },
  ) {
    this.#path = file;
    this.#sink = sink;
    this.#template = template;
    this.#maxBytes = maxBytes;
    this.#foldBytes = foldBytes;
  }

  /** Puts what is stored where SQLite finds it. Before the first use. */
  load(stored: StoredAgent | undefined): void {
    this.#erase();
    if (stored === undefined) return;
    const { base, deltas } = stored;
    const bytes = "template" in base ? base.template : Buffer.concat(base.map(unpackBytes));
    this.#write(applyDeltas(bytes, deltas));
    this.#seq = stored.seq;
    this.#deltaBytes = deltas.reduce((sum, delta) => sum + delta.length, 0);
  }

  exists(): boolean {
    return this.#there;
  }

  open(): OpenedFile {
    if (this.#dead !== undefined) throw this.#dead;
    if (!this.#there) this.#write(this.#template);
    const db = openSqlite(this.#path);
    const close = db.close.bind(db);
    // SQLite moves the log into the file as it closes, and deletes it: what is in it is read before.
    db.close = () => {
      this.#take();
      this.#db = undefined;
      this.#offset = 0;
      this.#moves++;
      return close();
    };
    try {
      db.pragma("locking_mode = EXCLUSIVE");
      db.pragma("synchronous = OFF");
      db.pragma("wal_autocheckpoint = 0");
      this.#pageBytes = Number(db.pragma("page_size", { simple: true }));
      db.pragma(`max_page_count = ${Math.max(1, Math.floor(this.#maxBytes / this.#pageBytes))}`);
      // From here on all that is written is read back, also when this goes wrong halfway.
      this.#db = db;
      migrateAgent(db);
      return { db };
    } catch (thrown) {
      db.close();
      throw thrown;
    }
  }

  /** A commit goes out by itself, whether or not anything waits for it: the process takes its disk with it. */
  committed(level: WriteLevel): void {
    if (this.#shipping) return;
    if (level === "sync") {
      this.#shipping = true;
      queueMicrotask(() => this.#ship());
    } else this.#timer ??= setTimeout(() => this.#ship(), COMMIT_WINDOW_MS);
  }

  #ship(): void {
    this.#shipping = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const sent = (this.listed ?? Promise.resolve()).then(() => {
      this.#shipping = false;
      return this.sync();
    });
    // Whoever waits for these rows hears of it as well, and so does whoever has the claim.
    sent.catch(() => {});
  }

  async sync(): Promise<void> {
    if (this.#dead !== undefined) throw this.#dead;
    this.#take();
    this.#send();
    await this.#sent;
    if (this.#deltaBytes > Math.max(this.#foldBytes, this.#fileBytes / FOLD_PART)) this.fold().catch(() => {});
  }

  /** All of the file was written anew, and nothing of what stood in it before is to be kept. */
  async rewritten(): Promise<void> {
    await this.#folding;
    while (!(await this.fold()));
  }

  closed(): void {}

  /** Its rows are somebody else's now, or nobody knows what became of the last: nothing of it is sent any more. */
  die(why: PerdureError): void {
    this.#dead = why;
    clearTimeout(this.#timer);
    this.#taken = [];
  }

  /** Deletes the file. The database is closed by then. */
  remove(): void {
    this.#erase();
  }

  /** Makes one base of all that was written so far. Off the event loop, apart from moving the log. @returns whether it was done */
  fold(): Promise<boolean> {
    this.#folding ??= this.#fold().finally(() => {
      this.#folding = undefined;
    });
    return this.#folding;
  }

  async #fold(): Promise<boolean> {
    if (this.#dead !== undefined) throw this.#dead;
    if (!this.#there) return true;
    this.#take();
    this.#send();
    const sent = this.#sent;
    const seq = this.#seq;
    if (this.#db !== undefined) {
      // All of the log was taken in this same breath.
      const [result] = this.#db.pragma("wal_checkpoint(TRUNCATE)") as { busy: number }[];
      if (result?.busy !== 0) return false;
      this.#offset = 0;
      this.#moves++;
    }
    const folded = this.#deltaBytes;
    const moves = this.#moves;
    this.#deltaBytes = 0;
    try {
      const bytes = await fs.promises.readFile(this.#path);
      // Read while SQLite wrote to it: neither what it was nor what it is.
      if (moves !== this.#moves) return this.#unfolded(folded);
      await sent;
      await this.#sink.fold(seq, partsOf(bytes));
      return true;
    } catch (thrown) {
      this.#unfolded(folded);
      throw thrown;
    }
  }

  #unfolded(bytes: number): false {
    this.#deltaBytes += bytes;
    return false;
  }

  #write(bytes: Uint8Array): void {
    fs.mkdirSync(path.dirname(this.#path), { recursive: true });
    fs.writeFileSync(this.#path, bytes, { mode: 0o600 });
    this.#there = true;
    this.#fileBytes = bytes.length;
  }

  #erase(): void {
    for (const suffix of ["", "-wal", "-shm"]) fs.rmSync(this.#path + suffix, { force: true });
    this.#there = false;
    this.#offset = 0;
    this.#moves++;
  }

  /** Reads what was committed since the last time. Never inside of a transaction: those are synchronous. */
  #take(): void {
    if (this.#db === undefined || this.#dead !== undefined) return;
    const bytes = readFrom(`${this.#path}-wal`, this.#offset);
    const found = bytes && readLog(bytes, this.#offset, this.#pageBytes);
    if (found === undefined) return;
    this.#offset = found.end;
    this.#fileBytes = found.delta.count * this.#pageBytes;
    const packed = packDelta(found.delta);
    this.#deltaBytes += packed.length;
    this.#taken.push(packed);
  }

  #send(): void {
    for (const pages of this.#taken.splice(0)) {
      this.#sent = this.#sink.append(++this.#seq, pages);
      this.#sent.catch(() => {});
    }
  }
}

async function* partsOf(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += BASE_PART_BYTES) yield packBytes(bytes.subarray(at, at + BASE_PART_BYTES));
}

/** The log carries no locks, so it may be opened and closed here. */
function readFrom(file: string, offset: number): Buffer | undefined {
  let fd: number;
  try {
    fd = fs.openSync(file, "r");
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return undefined;
    throw thrown;
  }
  try {
    const { size } = fs.fstatSync(fd);
    if (size <= offset) return undefined;
    const bytes = Buffer.allocUnsafe(size - offset);
    return bytes.subarray(0, fs.readSync(fd, bytes, 0, bytes.length, offset));
  } finally {
    fs.closeSync(fd);
  }
}
