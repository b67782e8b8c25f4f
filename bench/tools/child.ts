import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { FreshTask } from "./fresh.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const entry = fileURLToPath(new URL("./fresh.ts", import.meta.url));

/**
 * Perdure compiled as it is published, in a folder that goes afterwards: to strip types while files are loaded is what
 * only those pay who run the sources.
 */
export async function withCompiled<T>(work: (index: string) => Promise<T>): Promise<T> {
  const cache = join(root, "node_modules", ".cache");
  mkdirSync(cache, { recursive: true });
  const dir = mkdtempSync(join(cache, "perdure-bench-"));
  const types = join(createRequire(import.meta.url).resolve("typescript/package.json"), "..", "bin", "tsc");
  try {
    const args = [types, "-p", "tsconfig.build.json", "--outDir", dir, "--declaration", "false"];
    // Types are checked elsewhere: what is wrong with them does not keep it from being written.
    await run(process.execPath, [...args, "--declarationMap", "false", "--sourceMap", "false"], { cwd: root }).catch(
      () => undefined,
    );
    return await work(pathToFileURL(join(dir, "tools.js")).href);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** One task in a process of its own: what it measured. */
export async function inFreshProcess(task: FreshTask, index: string): Promise<readonly number[]> {
  const { stdout } = await run(process.execPath, ["--expose-gc", entry, task, index], { cwd: root });
  return JSON.parse(stdout) as number[];
}
