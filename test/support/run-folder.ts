// Vitest runs this once, before the first file: what all files of a run share is in folders that are gone after it.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

const VARIABLE = "PERDURE_RUN_FOLDER";
const DISK = "PERDURE_DISK_FOLDER";
/** Inside of `node_modules`, so that what is written there finds the packages. */
const home = fileURLToPath(new URL("../../node_modules/.cache/perdure-run", import.meta.url));
/** A file system in memory, where there is one. */
const MEMORY = "/dev/shm";
/** Far more than the tests have there at any time. */
const MEMORY_BYTES = 2 ** 30;

/** A folder for things that are made once in a run. */
export function runFolder(): string {
  const folder = process.env[VARIABLE];
  if (folder === undefined) throw new Error("There is a folder for the run only while Vitest runs.");
  return folder;
}

/** The system's temporary folder, for what is kept for the next run. */
export function diskFolder(): string {
  return process.env[DISK] ?? tmpdir();
}

export function setup(project: TestProject): (() => void) | undefined {
  // Once for all projects.
  if (process.env[VARIABLE] !== undefined) return undefined;
  const folder = makeFolder(home);
  const folders = [folder];
  process.env[VARIABLE] = folder;
  // Workers, and the programs that they start, load the same modules hundreds of times.
  process.env.NODE_COMPILE_CACHE ??= join(folder, "compiled");
  // Thousands of hosts are opened: waiting for the disk takes longer than their tests. What is killed is a process and
  // not the machine, so what was written is there after it in both cases. `TMPDIR=/tmp npm test` runs on the disk.
  if (process.env.TMPDIR === undefined && hasMemory()) {
    const temporary = makeFolder(join(MEMORY, "perdure-run"));
    folders.push(temporary);
    process.env[DISK] = tmpdir();
    process.env.TMPDIR = temporary;
  }
  // While watching, the sources have changed.
  project.onTestsRerun(() => rmSync(join(folder, "programs"), { recursive: true, force: true }));
  return () => folders.filter(isDone).forEach((path) => rmSync(path, { recursive: true, force: true }));
}

/** Crash tests that fail keep their folder for whoever wants to look; the next run removes it. */
function isDone(folder: string): boolean {
  return !readdirSync(folder).some((name) => name.startsWith("perdure-crash-"));
}

/** Makes a folder of this process, and removes those that runs have left behind which were killed. */
function makeFolder(parent: string): string {
  mkdirSync(parent, { recursive: true });
  for (const name of readdirSync(parent)) {
    if (!isAlive(Number.parseInt(name, 10))) rmSync(join(parent, name), { recursive: true, force: true });
  }
  return mkdtempSync(join(parent, `${process.pid}-`));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function hasMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= MEMORY_BYTES;
  } catch {
    return false;
  }
}
