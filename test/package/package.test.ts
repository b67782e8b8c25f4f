// What is published: built, packed and used as an app would.
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";
import { repository } from "../guards/plant.ts";

const MEGABYTE = 1_000_000;

interface Packed {
  readonly filename: string;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

let app: string;
let packed: Packed;
let told: Readonly<Record<string, unknown>>;
/** Where the app had its agents. */
let place: string;

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
  place = join(app, "data");
  told = JSON.parse(run(["--preserve-symlinks", "program.mjs", place], app)) as typeof told;
}, 300_000);
afterAll(() => rmSync(app, { recursive: true, force: true }));

test("the package is small, and has no sources and tests in it", () => {
  expect(packed.files.length).toBeLessThanOrEqual(500);
  expect(packed.unpackedSize).toBeLessThanOrEqual(4 * MEGABYTE);
  const folders = new Set(packed.files.map(({ path }) => path.split("/")[0]));
  // Pages for those who change the code are where the code is.
  expect(packed.files.map(({ path }) => path)).toEqual(
    expect.arrayContaining(["dist/docs/agent.md", "dist/docs/security.md"]),
  );
  expect(packed.files.filter(({ path }) => /(architecture|glossary)\.md$/.test(path))).toEqual([]);
  expect([...folders].sort()).toEqual(["CHANGELOG.md", "LICENSE", "README.md", "dist", "package.json"]);
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
    // `core`, the host, and what pages, programs, the command and another host load too.
    files: [
      ...[
        "abort",
        "admin-place",
        "agent-path",
        "core",
        "error",
        "event-stream",
        "file-calls",
        "flaws",
        "history",
        "host-socket",
      ],
      ...[
        "id",
        "in-order",
        "index.js",
        "json",
        "late-tables",
        "newcomer",
        "node.js",
        "on-node",
        "package-root",
        "parse-chunk",
        "path",
        "route-rules",
        "row-frames",
      ],
      ...["session-frames", "sql-error", "time", "tool-input", "types", "wal-sync"],
    ],
  });
  expect(told["saidFirst"]).toBe("Yes.");
  expect(told["onFirstTurn"]).toEqual({
    packages: [
      ...["@ai-sdk/gateway", "@ai-sdk/provider", "@ai-sdk/provider-utils", "@vercel/oidc", "@workflow/serde", "ai"],
      ...["eventsource-parser", "perdure", "zod"],
    ],
    // Says whether a shell can be offered to the model.
    files: ["node-bash-shell-lane.js"],
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

test("the command is installed with the package, and reads a directory at rest", () => {
  // What npm does with the package's `bin`.
  const modules = join(app, "node_modules");
  const { bin } = JSON.parse(readFileSync(join(modules, "perdure", "package.json"), "utf8")) as {
    bin: { perdure: string };
  };
  const target = join(modules, "perdure", bin.perdure);
  chmodSync(target, 0o755);
  mkdirSync(join(modules, ".bin"));
  symlinkSync(target, join(modules, ".bin", "perdure"));
  const perdure = (...args: readonly string[]) => {
    const { env, ...rest } = options(app);
    const path = [dirname(process.execPath), process.env["PATH"]].join(delimiter);
    return execFileSync(join(modules, ".bin", "perdure"), args, { ...rest, env: { ...env, PATH: path } });
  };
  expect(JSON.parse(perdure("info", "--json", "--dir", place))).toMatchObject({ running: false, ok: true });
  expect(JSON.parse(perdure("agents", "--json", "--dir", place))).toMatchObject({ id: "Talk/one", last: "completed" });
  expect(perdure("messages", "Talk/one", "--dir", place)).toContain("Both were run.");
  expect(perdure("docs", "operate")).toContain("# Operating a host");
});

function run(args: readonly string[], cwd: string): string {
  return execFileSync(process.execPath, args, options(cwd));
}

function options(cwd: string) {
  // Without the condition that the tests run under: an app has none.
  return { cwd, encoding: "utf8", env: { ...process.env, NODE_OPTIONS: "" }, maxBuffer: 64 * MEGABYTE } as const;
}
