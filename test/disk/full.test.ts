import { execFile } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Agent, callable } from "perdure";
import { expect, test } from "vitest";
import { connect, openHost, tempDir } from "../host/open-host.ts";
import { toStartError } from "../../src/host/node/start-error.ts";

const run = promisify(execFile);
const program = fileURLToPath(new URL("./start-program.ts", import.meta.url));

/** Starts the program on `dir` with its file system as bubblewrap is told; undefined where there is no bubblewrap. */
const JAIL = ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"];

const canMount = await run("bwrap", [...JAIL, "true"]).then(
  () => true,
  () => false,
);

async function startedIn(dir: string, mounts: readonly string[]): Promise<string> {
  const command = [process.execPath, "--conditions=perdure-source", program, dir];
  const { stdout } = await run("bwrap", [...JAIL, ...mounts, ...command]);
  return stdout.trim();
}

test("what the file system refuses at the start is said in words", () => {
  const refused = Object.assign(new Error("EROFS: read-only file system"), { code: "EROFS" });
  expect(toStartError(refused, "/proc/nowhere").code).toBe("directory_read_only");
  const dir = tempDir();
  const full = Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
  expect(toStartError(full, dir)).toMatchObject({ code: "disk_full", message: expect.stringContaining(dir) as string });
});

test.skipIf(!canMount)("a directory that cannot be written to is named as that at the start", async () => {
  const dir = join(tempDir(), "data");
  mkdirSync(dir);
  const said = await startedIn(dir, ["--ro-bind", dir, dir]);
  expect(said).toMatch(/^directory_read_only: The directory \S+\/data is not writable/);
  expect(await startedIn(join(dir, "new"), ["--ro-bind", dir, dir])).toContain("directory_read_only");
  expect(readdirSync(dir)).toEqual([]);
});

test.skipIf(!canMount)("a disk that is full at the start is named, with how much is free and what to do", async () => {
  const dir = join(tempDir(), "data");
  mkdirSync(dir);
  const said = await startedIn(dir, ["--size", "4096", "--tmpfs", dir]);
  expect(said).toMatch(/^disk_full: The file system of the directory \S+\/data is full \(0 MiB free\).*free space/);
});

class Keeper extends Agent<object, { n: number }> {
  static {
    callable(this, "keep");
    callable(this, "kept");
  }
  override initialState = { n: 0 };
  override onError(): void {}
  keep(bytes: number): number {
    this.sql`CREATE TABLE IF NOT EXISTS big (text TEXT)`;
    this.sql`INSERT INTO big (text) VALUES (${"x".repeat(bytes)})`;
    return this.kept();
  }
  kept(): number {
    return this.sql`SELECT 1 FROM sqlite_master WHERE name = 'big'`.length === 0
      ? 0
      : this.sql`SELECT 1 FROM big`.length;
  }
  override async onRequest(request: Request): Promise<Response> {
    if (request.method === "POST") this.keep(600_000);
    return new Response(String(this.kept()));
  }
}

test("with no room left, HTTP answers 507, calls fail in their own frame, and reading works on", async () => {
  const host = await openHost({ agents: { Keeper }, limits: { databaseBytes: 400_000 }, log: false });
  const url = `${host.url}/agents/keeper/a`;
  const client = await connect(host, "/agents/keeper/a");
  expect(await client.call("keep", 1000)).toBe(1);
  const response = await fetch(url, { method: "POST" });
  expect(response.status).toBe(507);
  expect(((await response.json()) as { error: { code: string } }).error.code).toBe("disk_full");
  await expect(client.call("keep", 600_000)).rejects.toThrow("No space left to write");
  expect(await client.call("kept")).toBe(1);
  expect(await (await fetch(url)).text()).toBe("1");
  expect(client.closed).toBeUndefined();
});
