import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

/** Runs a module in a process that takes itself for an older Node. */
function run(version: string, ...args: string[]): Promise<{ code: number | null; err: string; out: string }> {
  const pretend = `data:text/javascript,Object.defineProperty(process.versions,"node",{value:"${version}"})`;
  return new Promise((resolve) => {
    const child = execFile(process.execPath, ["--import", pretend, ...args], { cwd: root }, (_, out, err) =>
      resolve({ code: child.exitCode, out, err }),
    );
  });
}

const OLD = "Perdure needs Node 22 or later; this is Node 20.20.2. Install a newer one.\n";
const start = ["--conditions=perdure-source", "--input-type=module", "--eval"];

test("on a Node that is too old, perdure/node says so in one line before it loads SQLite", async () => {
  const program = `await import("perdure/node"); console.log("loaded");`;
  expect(await run("20.20.2", ...start, program)).toEqual({ code: 1, out: "", err: OLD });
  expect(await run("22.0.0", ...start, program)).toEqual({ code: 0, out: "loaded\n", err: "" });
});

test("npm start says it too, and both say what package.json says", async () => {
  expect(await run("20.20.2", "scripts/needs-node.cjs")).toEqual({ code: 1, out: "", err: OLD });
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    engines: { node: string };
    scripts: { start: string };
  };
  expect(manifest.engines.node).toBe(">=22");
  expect(manifest.scripts.start).toMatch(/^node scripts\/needs-node\.cjs && /);
});
