import { spawn } from "node:child_process";
import { chmod, chown, copyFile, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll, expect, test } from "vitest";
import type { Probe, RunResult } from "../../src/toolbox/sandbox/sandbox.ts";
import { MemoryFiles } from "../../src/toolbox/sandbox/memory-files.ts";
import { createProcessSandbox } from "../../src/toolbox/sandbox/process/process-sandbox.ts";
import { isOpenToAll } from "../../src/toolbox/sandbox/process/node/programs.ts";
import { diskFolder } from "../support/run-folder.ts";
import { inspectCode } from "./inspect-code.ts";
import { expectJail } from "./inspect-jail.ts";
import { jailed, printed, sandbox } from "./jailed.ts";

const program = fileURLToPath(new URL("as-nobody.ts", import.meta.url));
const NOBODY = 65_534;
afterAll(async () => await sandbox.dispose());

test(
  "the walls hold from inside, started by whoever runs the tests",
  jailed(async () => {
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
  }),
);

test(
  "the walls hold for a host that is not root",
  jailed(async () => {
    // Also where the sources, and Node, are root's own.
    const folder = await mkdtemp(join(diskFolder(), "perdure-nobody-"));
    try {
      const isRoot = process.getuid?.() === 0;
      await chmod(folder, 0o755);
      const script = join(folder, "as-nobody.mjs");
      await build({
        entryPoints: [program],
        outfile: script,
        bundle: true,
        platform: "node",
        format: "esm",
        logLevel: "error",
      });
      const node = (await isOpenToAll(process.execPath)) ? process.execPath : join(folder, "node");
      if (node !== process.execPath) await copyFile(process.execPath, node);
      if (isRoot) await chown(folder, NOBODY, NOBODY);
      const running = spawn(node, ["--no-warnings", script, folder], {
        ...(isRoot && { uid: NOBODY, gid: NOBODY }),
        ...{ env: {}, cwd: "/" },
        // It inherits one more descriptor, with a number that Node does not look after, and must not pass it on.
        stdio: [...(["pipe", "pipe", "inherit"] as const), ...Array<"ignore">(60).fill("ignore"), "pipe"],
      });
      running.stdin?.end(inspectCode);
      const stdout = running.stdout === null ? "" : await text(running.stdout);
      const said = JSON.parse(stdout) as { probe: Probe; uid: number; result: RunResult; fork: RunResult };
      expect(said).toMatchObject({
        uid: isRoot ? NOBODY : process.getuid?.(),
        probe: { ok: true, detail: expect.stringContaining("as the user of") as unknown },
      });
      expectJail(said.result, printed(said.result));
      expect(printed(said.fork)).toBe("1000");
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }),
);

test(
  "nothing of a run is left: processes that hide, files, folders",
  jailed(async () => {
    const temporary = await mkdtemp(join(diskFolder(), "perdure-left-"));
    await chmod(temporary, 0o711);
    const own = createProcessSandbox({ temporary });
    const mark = `${process.pid}.${Date.now()}`.replace(".", "");
    try {
      const result = await own.run({
        language: "bash",
        code: `
        (setsid nohup sleep ${mark} >/dev/null 2>&1 &)
        ( ( ( trap '' TERM HUP INT; exec sleep ${mark} ) & ) & ) >/dev/null 2>&1
        mkdir -p locked/in; chmod 0 locked; touch /tmp/left`,
        can: { files: { fs: new MemoryFiles(), mode: "read-write" } },
      });
      expect(result).toMatchObject({ status: "ok", exitCode: 0, files: { written: ["/locked", "/locked/in"] } });
      expect(await processesWith(mark)).toEqual([]);
      expect(printed(await own.run({ language: "bash", code: "ls /tmp" }))).toBe("");
      const [home] = await readdir(temporary);
      expect(await readdir(join(temporary, home ?? ""))).toEqual(["etc"]);
      await own.dispose();
      expect(await readdir(temporary)).toEqual([]);
    } finally {
      await rm(temporary, { recursive: true, force: true });
    }
  }),
);

test(
  "what the host's own process inherited or knows does not get in",
  jailed(async () => {
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
  }),
);

async function processesWith(mark: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of (await readdir("/proc")).filter((one) => /^\d+$/.test(one))) {
    const line = await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "");
    if (line.includes(mark)) found.push(line);
  }
  return found;
}
