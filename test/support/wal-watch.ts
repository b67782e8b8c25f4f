import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";

/*
 * How many bytes SQLite writes for one database, read from its write-ahead log. Every page that a commit changes is a
 * frame there. A log that has grown to `wal_autocheckpoint` pages is copied into the database, each of its pages once,
 * and then written again from its beginning under new salts. So whoever looks after every commit sees all frames:
 *
 *   bytes = 32 per log + (24 + page) per frame + page per different page of a log that was copied
 */
const LOG_HEADER = 32;
const FRAME_HEADER = 24;
const SALTS_IN_LOG = 16;
const SALTS_IN_FRAME = 8;
const SALTS = 8;
const PAGE_SIZE_AT = 8;

/** What was written. */
export interface Written {
  readonly bytes: number;
  /** Pages in commits. */
  readonly frames: number;
  /** How often the log was copied into the database. */
  readonly checkpoints: number;
}

/** Counts what is written to the database `file`. Call {@link WalWatch.look} after every commit. */
export class WalWatch {
  readonly #log: string;
  #salts = "";
  /** Frames of this log that were seen, and the pages in them. */
  #seen = 0;
  readonly #pages = new Set<number>();
  #bytes = 0;
  #frames = 0;
  #checkpoints = 0;

  constructor(file: string) {
    this.#log = `${file}-wal`;
  }

  /** Everything so far; the copy of a log is counted when the next one begins. */
  get written(): Written {
    return { bytes: this.#bytes, frames: this.#frames, checkpoints: this.#checkpoints };
  }

  look(): void {
    if (!existsSync(this.#log) || statSync(this.#log).size < LOG_HEADER) return;
    const fd = openSync(this.#log, "r");
    try {
      this.#read(fd);
    } finally {
      closeSync(fd);
    }
  }

  #read(fd: number): void {
    const head = Buffer.alloc(LOG_HEADER);
    readSync(fd, head, 0, LOG_HEADER, 0);
    const page = head.readUInt32BE(PAGE_SIZE_AT);
    const salts = head.toString("hex", SALTS_IN_LOG, SALTS_IN_LOG + SALTS);
    if (salts !== this.#salts) this.#begin(salts, page);
    const frame = Buffer.alloc(FRAME_HEADER);
    for (;;) {
      const at = LOG_HEADER + this.#seen * (FRAME_HEADER + page);
      if (readSync(fd, frame, 0, FRAME_HEADER, at) < FRAME_HEADER) return;
      // What is left of an earlier log stands behind the end of this one.
      if (frame.toString("hex", SALTS_IN_FRAME, SALTS_IN_FRAME + SALTS) !== salts) return;
      this.#seen++;
      this.#pages.add(frame.readUInt32BE(0));
      this.#frames++;
      this.#bytes += FRAME_HEADER + page;
    }
  }

  #begin(salts: string, page: number): void {
    if (this.#salts !== "") {
      this.#bytes += this.#pages.size * page;
      this.#checkpoints++;
    }
    this.#bytes += LOG_HEADER;
    this.#salts = salts;
    this.#seen = 0;
    this.#pages.clear();
  }
}
