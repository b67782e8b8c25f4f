import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { openChromium } from "../browser-tool/browser-suite.ts";
import { tempDir } from "../host/open-host.ts";

const run = promisify(execFile);
const program = fileURLToPath(new URL("./temporary-program.ts", import.meta.url));
const node = [process.execPath, "--conditions=perdure-source", program] as const;
const jails = fileURLToPath(new URL("./jails-program.ts", import.meta.url));
const NOWHERE = { ...process.env, TMPDIR: "/nowhere/at/all", SQLITE_TMPDIR: "/nowhere/at/all" };
const ALL_WELL = ["sort: 20000", "shift: 20000", "talk: user assistant", "find: 1", "clean: nothing kept"];

const saidIn = (dir: string): string[] => readFileSync(join(dir, "said"), "utf8").trimEnd().split("\n");

/** Whether this machine can show a program a file system that cannot be written to. */
async function hasReadOnlyRoots(): Promise<boolean> {
  return await run("bwrap", ["--ro-bind", "/", "/", "true"]).then(
    () => true,
    () => false,
  );
}

test("on a read-only root file system turns, sorts, searches and erasing work: all that is written is in the directory", async () => {
  const dir = tempDir();
  // Without bubblewrap the same program still has no folder for temporary files that it could use.
  const jail = ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--bind", dir, dir, "--chdir", "/"];
  const [file, ...args] = (await hasReadOnlyRoots()) ? ["bwrap", ...jail, ...node, dir] : [...node, dir];
  await run(file, args, { env: NOWHERE });
  expect(saidIn(dir)).toEqual(ALL_WELL);
}, 120_000);

test("on a read-only root file system jails and browsers work: what they write is in memory", async () => {
  const dir = tempDir();
  const chromium = await openChromium();
  // With the machine's own /proc: a jail inside of another cannot have one of its own.
  const root = ["--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc", "--bind", dir, dir];
  const command = [process.execPath, "--conditions=perdure-source", jails, dir, chromium];
  const [file = "", ...args] = (await hasReadOnlyRoots()) ? ["bwrap", ...root, "--chdir", "/", ...command] : command;
  await run(file, args, { env: NOWHERE });
  const [jail, browser] = saidIn(dir);
  expect(jail).toMatch(/^jail: ran$|^no jail: /);
  expect(browser).toBe("browser: shows the page");
}, 120_000);
