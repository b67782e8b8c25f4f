import fs from "node:fs";
import path from "node:path";
import { FILE_MODE } from "./private-files.ts";
import { openSqlite } from "./open-sqlite.ts";

/**
 * What a host notes outside of its database, beside the agents' files: how far the index had come, and what was about to be
 * deleted. An index that is behind it is an old copy.
 */
interface IndexMark {
  /** Another one for every start. */
  readonly token: string;
  /** Grows with everything that is written, over all starts. */
  readonly count: number;
  /** How far the main file had come by itself, without its log. Undefined in marks of earlier versions. */
  readonly base?: number;
  /** Agents whose files may still be there, though they are deleted. */
  readonly doomed: readonly string[];
}

const markFile = (dir: string) => path.join(dir, "agents.json");
/** Room for any number that JSON can tell from the next one. */
const COUNT_CHARS = 16;

/** @returns undefined when there is none, or none that can be read. */
export function readMark(dir: string): IndexMark | undefined {
  try {
    const read = JSON.parse(fs.readFileSync(markFile(dir), "utf8")) as Partial<IndexMark>;
    const { token, count, base, doomed } = read;
    if (typeof token !== "string" || typeof count !== "number" || !Array.isArray(doomed)) return undefined;
    const known = { token, count, doomed: doomed.filter((id) => typeof id === "string") };
    return typeof base === "number" ? { ...known, base } : known;
  } catch {
    return undefined;
  }
}

/** The file with the mark. The number is written in its place, so that it costs one small write each time. */
export class MarkFile {
  readonly #file: string;
  #fd: number | undefined;
  #countAt = 0;

  constructor(dir: string) {
    this.#file = markFile(dir);
  }

  /** Whole or not at all, also when the process dies in it. */
  write({ token, count, base, doomed }: IndexMark): void {
    const head = `{"token":${JSON.stringify(token)},"count":`;
    const rest = JSON.stringify({ base, doomed }).slice(1);
    const fd = writeNew(`${this.#file}.draft`, `${head}${padded(count)},${rest}`);
    try {
      fs.renameSync(`${this.#file}.draft`, this.#file);
    } catch (thrown) {
      fs.closeSync(fd);
      throw thrown;
    }
    this.close();
    this.#fd = fd;
    this.#countAt = Buffer.byteLength(head);
  }

  /** The number alone. */
  count(count: number): void {
    if (this.#fd !== undefined) fs.writeSync(this.#fd, padded(count), this.#countAt);
  }

  close(): void {
    if (this.#fd !== undefined) fs.closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** Writes a file that nobody else has made: what stands in its place goes, and a link is not followed. @returns it, open */
export function writeNew(file: string, text: string): number {
  fs.rmSync(file, { force: true });
  const fd = fs.openSync(file, "wx", FILE_MODE);
  try {
    fs.writeSync(fd, text);
    return fd;
  } catch (thrown) {
    fs.closeSync(fd);
    throw thrown;
  }
}

function padded(count: number): string {
  return String(count).padStart(COUNT_CHARS);
}

/** Where the header of a database says how it is written and read: with a log, or without. */
const JOURNAL_BYTES = [18, 19];
const WITHOUT_LOG = 1;

/**
 * A main file from before the last time that the log was moved into it is an old copy, and the log beside it is not its own:
 * SQLite would make a mixture of the two. Then the log is deleted, so that the copy is seen for what it is.
 * Only for a file that nothing in this process has open: to close it would drop SQLite's locks on it.
 */
export function dropForeignLog(file: string, mark: IndexMark | undefined): void {
  if (mark?.base === undefined || !isFilled(`${file}-wal`)) return;
  const own = countAlone(file);
  if (own === undefined || own >= mark.base) return;
  fs.rmSync(`${file}-wal`, { force: true });
  fs.rmSync(`${file}-shm`, { force: true });
}

/** How far the main file has come by itself. Undefined: it does not say. */
function countAlone(file: string): number | undefined {
  try {
    const bytes = fs.readFileSync(file);
    for (const at of JOURNAL_BYTES) bytes[at] = WITHOUT_LOG;
    const db = openSqlite(bytes);
    try {
      return db.prepare<[], number>("SELECT count FROM mark").pluck().get();
    } finally {
      db.close();
    }
  } catch {
    return undefined;
  }
}

function isFilled(file: string): boolean {
  return (fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
}
