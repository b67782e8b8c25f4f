import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { chown, readdir, readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect } from "vitest";
import type { Probe, RunResult } from "../../src/sandbox/sandbox.ts";
import { isOpenToAll, isWayOpenToAll } from "../../src/sandbox/process/node/programs.ts";
import { diskFolder } from "../support/run-folder.ts";
import { inspectCode } from "./inspect-code.ts";
import { expectJail } from "./inspect-jail.ts";
import { jailed, printed, sandbox } from "./jailed.ts";

const run = promisify(execFile);
const program = fileURLToPath(new URL("as-nobody.ts", import.meta.url));
const NOBODY = 65_534;
afterAll(async () => await sandbox.dispose());

jailed("the walls hold from inside, started by whoever runs the tests", async () => {
  // Something to connect to, if there were a way.
  const server = createServer().listen(0, "127.0.0.1");
  const abstract = createServer().listen("\0perdure-jail-test");
  try {
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const code = inspectCode.replace("sys.argv[1]", `"${port}"`).replace("len(sys.argv) > 1", "True");
    const result = await sandbox.run({ language: "python", code });
    expectJail(result, printed(result));
  } finally {
    server.close();
    abstract.close();
  }
});

jailed("the walls hold for a host that is not root", async () => {
  if (process.getuid?.() !== 0) return expect((await sandbox.probe()).ok).toBe(true);
  // Where the sources are root's own, nobody cannot run them; then this is all that can be said.
  if (!(await isWayOpenToAll(dirname(program))) || !(await isOpenToAll(process.execPath))) {
    return expect(await sandbox.probe()).toMatchObject({
      detail: expect.stringContaining(`user ${NOBODY}`) as unknown,
    });
  }
  const temporary = mkdtempSync(join(diskFolder(), "perdure-nobody-"));
  try {
    await chown(temporary, NOBODY, NOBODY);
    const { stdout } = await run(process.execPath, ["--no-warnings", program, temporary], {
      ...{ uid: NOBODY, gid: NOBODY, env: {}, cwd: "/" },
    });
    const said = JSON.parse(stdout) as { probe: Probe; uid: number; result: RunResult; fork: RunResult };
    expect(said).toMatchObject({
      uid: NOBODY,
      probe: { ok: true, detail: expect.stringContaining("as the user of") as unknown },
    });
    expectJail(said.result, printed(said.result));
    expect(printed(said.fork)).toBe("1000");
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
});

jailed("nothing of a run is left: processes that hide, files, folders", async () => {
  const before = await countFolders();
  const mark = `${process.pid}.${Date.now()}`.replace(".", "");
  const result = await sandbox.run({
    language: "bash",
    code: `
      (setsid nohup sleep ${mark} >/dev/null 2>&1 &)
      ( ( ( trap '' TERM HUP INT; exec sleep ${mark} ) & ) & ) >/dev/null 2>&1
      touch /tmp/left; pgrep -c sleep || true`,
  });
  expect(result).toMatchObject({ status: "ok", exitCode: 0 });
  expect(await processesWith(mark)).toEqual([]);
  expect(printed(await sandbox.run({ language: "bash", code: "ls /tmp" }))).toBe("");
  expect(await countFolders()).toBe(before);
});

jailed("what the host's own process inherited or knows does not get in", async () => {
  process.env.PERDURE_JAIL_SECRET = "hunter2";
  try {
    const result = await sandbox.run({
      language: "bash",
      code: "env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; set; cat /sandbox/*; ls /proc/1/cwd/ /proc/1/root/ 2>&1",
      can: { env: { GIVEN: "yes" } },
    });
    expect(printed(result)).toContain("GIVEN=yes");
    expect(JSON.stringify(result)).not.toMatch(/hunter2|PERDURE_|VITEST/);
  } finally {
    delete process.env.PERDURE_JAIL_SECRET;
  }
});

async function processesWith(mark: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of (await readdir("/proc")).filter((one) => /^\d+$/.test(one))) {
    const line = await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "");
    if (line.includes(mark)) found.push(line);
  }
  return found;
}

async function countFolders(): Promise<number> {
  const folder = diskFolder();
  const homes = (await readdir(folder)).filter((name) => name.startsWith("perdure-jail-"));
  const inside = await Promise.all(homes.map(async (name) => await readdir(join(folder, name)).catch(() => [])));
  return inside.flat().length;
}
