// What is published: built, packed and used as an app would.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";
import { repository } from "../guards/plant.ts";
import { tempDir } from "../host/open-host.ts";

const MEGABYTE = 1_000_000;

interface Packed {
  readonly filename: string;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

let app: string;
let packed: Packed;
let told: Readonly<Record<string, unknown>>;

beforeAll(() => {
  run(["scripts/build.ts"], repository);
  app = mkdtempSync(join(tmpdir(), "perdure-package-"));
  const packing = execFileSync(
    "npm",
    ["pack", "--json", "--ignore-scripts", "--pack-destination", app],
    options(repository),
  );
  packed = (JSON.parse(packing) as [Packed])[0];
  const modules = join(app, "node_modules");
  mkdirSync(modules);
  execFileSync("tar", ["-xzf", packed.filename], { cwd: app });
  cpSync(join(app, "package"), join(modules, "perdure"), { recursive: true });
  for (const name of readdirSync(join(repository, "node_modules"))) {
    if (!name.startsWith(".")) symlinkSync(join(repository, "node_modules", name), join(modules, name));
  }
  cpSync(join(import.meta.dirname, "program.mjs"), join(app, "program.mjs"));
  told = JSON.parse(run(["--preserve-symlinks", "program.mjs", tempDir()], app)) as typeof told;
}, 300_000);
afterAll(() => rmSync(app, { recursive: true, force: true }));

test("the package is small, and has no sources and tests in it", () => {
  expect(packed.files.length).toBeLessThanOrEqual(500);
  expect(packed.unpackedSize).toBeLessThanOrEqual(4 * MEGABYTE);
  const folders = new Set(packed.files.map(({ path }) => path.split("/")[0]));
  expect([...folders].sort()).toEqual(["CHANGELOG.md", "LICENSE", "README.md", "dist", "docs", "package.json"]);
});

test("an app that has only the package holds a conversation, and every subpath is there under its names", () => {
  expect(told["said"]).toContain("Both were run.");
  expect(told["said"]).toContain("42");
  expect(told["said"]).toContain("48");
  expect(told["misnamed"]).toEqual([]);
  expect(told["names"]).toBeGreaterThan(200);
});

test("an import loads neither the AI SDK nor what an agent may never use; a first turn loads the AI SDK alone", () => {
  // Nothing of sandboxes, MCP, messengers or collections.
  expect(told["onImport"]).toEqual({
    packages: ["@hono/node-server", "better-sqlite3", "croner", "hono", "perdure", "ws"],
    // `core`, the host, and what pages and programs load too.
    files: [
      ...["abort", "agent-path", "core", "error", "event-stream", "file-calls", "history", "id", "in-order"],
      ...["index.js", "json", "node.js", "parse-chunk", "row-frames", "session-frames", "time", "tool-input", "types"],
    ],
  });
  expect(told["saidFirst"]).toBe("Yes.");
  expect(told["onFirstTurn"]).toEqual({
    packages: [
      ...["@ai-sdk/gateway", "@ai-sdk/provider", "@ai-sdk/provider-utils", "@vercel/oidc", "@workflow/serde", "ai"],
      ...["eventsource-parser", "perdure", "zod"],
    ],
    // Says whether a shell can be offered to the model.
    files: ["shell-lane"],
  });
});

test("a Worker that has only the package is bundled without Node's modules, and what needs Node says so", async () => {
  const entry = join(app, "worker.mjs");
  writeFileSync(
    entry,
    `import { Think } from "perdure";
     import { createCloudflareHost } from "perdure/cloudflare";
     import { createExecuteTool } from "perdure/tools";
     class Talk extends Think { getTools() { return { execute: createExecuteTool({ tools: {} }) }; } }
     const host = createCloudflareHost({ agents: { Talk } });
     export const { PerdureObject } = host;
     export default { fetch: host.fetch };`,
  );
  const { metafile, outputFiles } = await build({
    ...{ entryPoints: [entry], absWorkingDir: app, bundle: true, format: "esm", write: false, metafile: true },
    ...{ platform: "browser", conditions: ["workerd", "worker", "browser"], external: ["cloudflare:*", "node:*"] },
    ...{ preserveSymlinks: true, logLevel: "silent" },
  });
  const imports = Object.values(metafile.outputs).flatMap((one) => one.imports.filter(({ external }) => external));
  expect([...new Set(imports.map(({ path }) => path))].sort()).toEqual(["cloudflare:workers", "node:async_hooks"]);
  expect(outputFiles[0]?.text).toContain("This needs Node");
});

function run(args: readonly string[], cwd: string): string {
  return execFileSync(process.execPath, args, options(cwd));
}

function options(cwd: string) {
  // Without the condition that the tests run under: an app has none.
  return { cwd, encoding: "utf8", env: { ...process.env, NODE_OPTIONS: "" }, maxBuffer: 64 * MEGABYTE } as const;
}
