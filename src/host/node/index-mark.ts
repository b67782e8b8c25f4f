import fs from "node:fs";
import path from "node:path";
import { FILE_MODE } from "./private-files.ts";

/** What a host notes beside its database: how far the index is, and what is being deleted. An index behind it is an old copy. */
export interface IndexMark {
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
