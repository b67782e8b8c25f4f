// Makes `dist`: one file for each subpath of the package, and what they share. Flat, so that the programs that run in
// threads and processes of their own stand beside whatever file starts them.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { decode, encode } from "@jridgewell/sourcemap-codec";
import { build } from "esbuild";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { rolldown } from "rolldown";
import { dts } from "rolldown-plugin-dts";
import { checkConsumer } from "./consumer-types.ts";
import { runTool } from "./run-tool.ts";
import { readManifest } from "./source-tree.ts";

const root = join(import.meta.dirname, "..");
const dist = join(root, "dist");
/** The oldest Node that is supported: see `engines`. */
const TARGET = "node22";
const LINE_LENGTH = 120;
/** What is started by its address, not imported. */
const PROGRAMS = [
  "src/toolbox/sandbox/bash/node/worker.ts",
  "src/toolbox/sandbox/npm/node/bundle-child.ts",
  "src/toolbox/sandbox/quickjs/node/lane-entry.ts",
];

/** Sources of the public subpaths, by the name of their file in `dist`. */
const entries = Object.fromEntries(
  Object.values(readManifest(root).exports).flatMap((target): [string, string][] => {
    if (typeof target === "string") return [];
    const { ["perdure-source"]: source, default: built } = target as Record<string, string>;
    return source === undefined || built === undefined ? [] : [[basename(built, ".js"), source]];
  }),
);

rmSync(dist, { recursive: true, force: true });
await bundleCode();
await bundleTypes();
const failed = [
  ...(await lintPackage()),
  ...(await checkConsumer(root)).map((line) => `without optional peers: ${line}`),
];
for (const line of failed) console.error(`build: ${line}`);
if (failed.length > 0) process.exit(1);
console.log("build: dist is ready");

async function bundleCode(): Promise<void> {
  const programs = Object.fromEntries(PROGRAMS.map((path) => [basename(path, ".ts"), path]));
  await build({
    ...{ absWorkingDir: root, entryPoints: { ...entries, ...programs }, outdir: dist },
    ...{ bundle: true, splitting: true, format: "esm", platform: "node", target: TARGET, packages: "external" },
    // Names stay; lines are short enough to be told apart in a stack trace, by the maps and without them.
    ...{ minifyWhitespace: true, minifySyntax: true, lineLimit: LINE_LENGTH, charset: "utf8" },
    ...{ sourcemap: true, sourcesContent: false, logLevel: "warning" },
  });
  for (const name of readdirSync(dist)) if (name.endsWith(".map")) thinMap(join(dist, name));
}

/** Keeps one place for each line: enough for stack traces, and a seventh of the size. */
function thinMap(file: string): void {
  const map = JSON.parse(readFileSync(file, "utf8")) as { mappings: string; names: string[] };
  const lines = decode(map.mappings).map((places) =>
    places.slice(0, 1).map((place) => place.slice(0, 4) as typeof place),
  );
  writeFileSync(file, JSON.stringify({ ...map, names: [], mappings: encode(lines) }));
}

async function bundleTypes(): Promise<void> {
  const folder = mkdtempSync(join(root, "dist", "types-"));
  try {
    const compiled = await runTool("tsc", ["-p", "tsconfig.build.json", "--outDir", folder, "--pretty", "false"], root);
    if (!compiled.ok) throw new Error(compiled.output);
    const declared = (source: string) => join(folder, source.replace(/^\.\/src\//, "").replace(/\.ts$/, ".d.ts"));
    const bundle = await rolldown({
      cwd: root,
      checks: { pluginTimings: false },
      input: Object.fromEntries(Object.entries(entries).map(([name, source]) => [name, declared(source)])),
      external: (id) => !id.startsWith(".") && !id.startsWith("/"),
      plugins: [dts({ dtsInput: true, tsconfig: false, sourcemap: false })],
    });
    await bundle.write({ dir: dist, format: "es", chunkFileNames: "[name]-[hash].js" });
    await bundle.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function lintPackage(): Promise<string[]> {
  const { messages, pkg } = await publint({ pkgDir: root, strict: true });
  return messages
    .filter(({ type }) => type === "error")
    .map((message) => `publint: ${formatMessage(message, pkg ?? {}) ?? message.code}`);
}
