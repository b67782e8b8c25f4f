import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { tempDir } from "../host/open-host.ts";

const program = fileURLToPath(new URL("./modes-program.ts", import.meta.url));

/** Runs the program until it has stored something, and then `look` while it still runs. */
async function whileItRuns(dir: string, umask: string, look: () => void): Promise<void> {
  const child: ChildProcess = spawn(process.execPath, ["--conditions=perdure-source", program, dir, umask], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const kept = new Promise((resolve) => child.stdout?.once("data", resolve));
  expect(String(await Promise.race([kept, ended]))).toBe("kept\n");
  look();
  child.stdin?.end();
  expect(await ended).toBe(0);
}

/** What anybody but the owner may do with something below `dir`, as `name mode`. */
function openToOthers(dir: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => (statSync(file).mode & 0o077) !== 0)
    .map((file) => `${file.slice(dir.length + 1)} ${(statSync(file).mode & 0o777).toString(8)}`);
}

const kindsIn = (dir: string): string[] => {
  const names = readdirSync(dir, { recursive: true }).map((name) => String(name));
  const kinds = names.map((name) => name.replace(/[0-9a-f]{24,}/g, "#").replace(/\d+(?=\.db)/, "N"));
  return [...new Set(kinds)].sort();
};

test.each(["000", "022", "077"])("under umask %s all that a host makes is for its own user alone", async (umask) => {
  const dir = join(tempDir(), "made", "data");
  await whileItRuns(dir, umask, () => {
    expect(openToOthers(dir)).toEqual([]);
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    // It would be no test if these were not among them.
    expect(kindsIn(dir)).toEqual(
      expect.arrayContaining([
        ...["agents/Keeper/a.#.db", "agents/Keeper/a.#.db-wal", "blobs/a.#/#", "host.db", "host.db-wal", "host.pid"],
        ...["spare/N.db", "files/ab/x/#"],
      ]),
    );
  });
  expect(openToOthers(dir)).toEqual([]);
});

test("what stands open from before is closed to others at the start, and nothing that is not the host's is touched", async () => {
  const dir = tempDir();
  await whileItRuns(dir, "000", () => undefined);
  const ours = readdirSync(dir, { recursive: true, withFileTypes: true });
  for (const entry of ours) chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
  mkdirSync(join(dir, "public"), { mode: 0o755 });
  writeFileSync(join(dir, "public", "page.html"), "", { mode: 0o644 });
  chmodSync(join(dir, "public"), 0o755);
  chmodSync(dir, 0o755);
  await whileItRuns(dir, "000", () => {
    expect(openToOthers(dir).filter((line) => !line.startsWith("files"))).toEqual([
      "public 755",
      "public/page.html 644",
    ]);
    // Somebody else keeps something in it, who may have to get there.
    expect(statSync(dir).mode & 0o777).toBe(0o755);
  });
});

test("a directory that has nothing but the host's own data is closed as a whole", async () => {
  const dir = join(tempDir(), "data");
  mkdirSync(dir);
  chmodSync(dir, 0o755);
  await whileItRuns(dir, "022", () => expect(statSync(dir).mode & 0o777).toBe(0o700));
});
