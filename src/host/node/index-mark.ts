import fs from "node:fs";
import path from "node:path";
import { FILE_MODE } from "./private-files.ts";

/**
 * What a host notes outside of its database, beside the agents' files: how far the index had come when it was written to
 * last, and what was about to be deleted. An index that is behind it is an old copy.
 */
export interface IndexMark {
  /** Another one for every start. */
  readonly token: string;
  readonly count: number;
  /** Agents whose files may still be there, though they are deleted. */
  readonly doomed: readonly string[];
}

const markFile = (dir: string) => path.join(dir, "agents.json");

/** @returns undefined when there is none, or none that can be read. */
export function readMark(dir: string): IndexMark | undefined {
  try {
    const read = JSON.parse(fs.readFileSync(markFile(dir), "utf8")) as Partial<IndexMark>;
    const { token, count, doomed } = read;
    if (typeof token !== "string" || typeof count !== "number" || !Array.isArray(doomed)) return undefined;
    return { token, count, doomed: doomed.filter((id) => typeof id === "string") };
  } catch {
    return undefined;
  }
}

/** Whole or not at all, also when the process dies in it. */
export function writeMark(dir: string, mark: IndexMark): void {
  const file = markFile(dir);
  fs.writeFileSync(`${file}.draft`, JSON.stringify(mark), { mode: FILE_MODE });
  fs.renameSync(`${file}.draft`, file);
}
