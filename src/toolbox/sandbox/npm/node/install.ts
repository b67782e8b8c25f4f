import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PerdureError } from "../../../../base/error.ts";
import type { InstalledPackages, InstallPackagesOptions } from "../install-packages.ts";

const DAY_MS = 86_400_000;
const MAX_OUTPUT = 1 << 20;
const MAX_SHOWN = 2_000;

/** See `installPackages`. */
export async function install(
  options: InstallPackagesOptions & { timeoutMs: number; npm: readonly string[] },
): Promise<InstalledPackages> {
  const { packages, store, minimumAgeDays, timeoutMs, npm } = options;
  await mkdir(store, { recursive: true });
  const dependencies = Object.fromEntries(
    Object.entries(packages).map(([name, version]) => [name, version === true ? "latest" : version]),
  );
  const manifest = { name: "perdure-packages", private: true, dependencies };
  await writeFile(join(store, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  const [program = "npm", ...first] = npm;
  const age =
    minimumAgeDays === undefined ? [] : [`--before=${new Date(Date.now() - minimumAgeDays * DAY_MS).toISOString()}`];
  const flags = [
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--no-bin-links",
    "--omit=dev",
    "--omit=optional",
    ...age,
  ];
  await run(program, [...first, "install", ...flags], store, timeoutMs);
  const installed: Record<string, string> = {};
  for (const name of Object.keys(packages)) {
    const text = await readFile(join(store, "node_modules", name, "package.json"), "utf8").catch(() => undefined);
    if (text === undefined) throw new PerdureError("call_failed", `npm ended, but "${name}" is not in the store.`);
    installed[name] = String((JSON.parse(text) as { version?: unknown }).version);
  }
  return { installed };
}

function run(program: string, args: readonly string[], cwd: string, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile(
      program,
      args,
      { cwd, timeout: timeoutMs, killSignal: "SIGKILL", maxBuffer: MAX_OUTPUT },
      (error, _stdout, stderr) => {
        if (error === null) resolve();
        else if (error.killed === true) reject(new PerdureError("timeout", `npm took longer than ${timeoutMs} ms.`));
        else
          reject(
            new PerdureError("call_failed", `npm failed: ${stderr.slice(-MAX_SHOWN) || error.message}`, {
              cause: error,
            }),
          );
      },
    );
  });
}
