// Makes `dist`: one file for each subpath of the package, and what they share. Flat, so that the programs that run in
// threads and processes of their own stand beside whatever file starts them.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { decode, encode } from "@jridgewell/sourcemap-codec";
import { build, transform } from "esbuild";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { type Plugin, rolldown } from "rolldown";
import { dts } from "rolldown-plugin-dts";
import { checkConsumer } from "./consumer-types.ts";
import { runTool } from "./run-tool.ts";
import { parseSource, relativeTarget } from "./parse-source.ts";
import { isTest, readManifest, sourceFiles } from "./source-tree.ts";

const root = join(import.meta.dirname, "..");
const dist = join(root, "dist");
/** The oldest Node that is supported: see `engines`. */
const TARGET = "node22";
const LINE_LENGTH = 120;
/** What is started by its address, not imported. */
const PROGRAMS = [
  "src/cli/perdure.ts",
  "src/toolbox/sandbox/bash/node/worker.ts",
  "src/toolbox/sandbox/npm/node/bundle-child.ts",
  "src/toolbox/sandbox/quickjs/node/lane-entry.ts",
];

/** Subpaths that browsers load. */
const PAGES = ["client", "react", "collections", "collections-log", "collections-worker", "collections-answer"];
/** Subpaths that run on Node alone. */
const ON_NODE: ReadonlySet<string> = new Set(["node", "testing"]);
/** Pages for those who change the code are where the code is. */
const FOR_MAINTAINERS: ReadonlySet<string> = new Set(["architecture.md", "glossary.md"]);
const QUIET = { pluginTimings: false };
/** Loaded on demand, in folders of what needs Node. The package's `imports` say what stands in their place elsewhere. */
const NODE_MODULE = /^src\/(?:.+\/)?([^/]+)\/node\/([^/]+)\.ts$/;

/** Sources of the public subpaths, by the name of their file in `dist`. */
const entries = Object.fromEntries(
  Object.values(readManifest(root).exports).flatMap((target): [string, string][] => {
    if (typeof target === "string") return [];
    const { ["perdure-source"]: source, default: built } = target as Record<string, string>;
    return source === undefined || built === undefined ? [] : [[basename(built, ".js"), source]];
  }),
);

/** Leaves such modules to the package's `imports`: a bundler for another platform finds something else there. */
const byName: Plugin = {
  name: "by-name",
  resolveId(source, importer, { kind }) {
    if (kind !== "dynamic-import" || !/\/node\/[^/]+\.ts$/.test(source)) return null;
    if (importer === undefined || importer.includes("/node/")) return null;
    return { id: `#node/${nameOf(relative(root, resolve(dirname(importer), source)))}`, external: true };
  },
};

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
await bundleCode();
await bundleTypes();
writePages();
const failed = [
  ...(await lintPackage()),
  ...(await checkConsumer(root)).map((line) => `without optional peers: ${line}`),
];
for (const line of failed) console.error(`build: ${line}`);
if (failed.length > 0) process.exit(1);
console.log("build: dist is ready");

async function bundleCode(): Promise<void> {
  const programs = Object.fromEntries(PROGRAMS.map((path) => [basename(path, ".ts"), path]));
  const onDemand = { ...nodeModules(), "needs-node": "src/host/cloudflare/needs-node.ts" };
  const input = { ...entries, ...programs, ...onDemand };
  const { core, onNode } = await sharedModules(input);
  const bundle = await rolldown({
    cwd: root,
    input,
    platform: "node",
    external: isPackage,
    plugins: [byName],
    checks: QUIET,
    preserveEntrySignatures: "allow-extension",
  });
  const { output } = await bundle.generate({
    ...{ dir: dist, format: "es", sourcemap: true, chunkFileNames: "[name]-[hash].js" },
    codeSplitting: {
      includeDependenciesRecursively: false,
      // A file for each set of subpaths that share it would be eighty: to read and link them takes as long as what is in them.
      groups: [{ name: (id) => (core.has(id) ? "core" : onNode.has(id) ? "on-node" : null) }],
    },
  });
  await bundle.close();
  for (const file of output) if (file.type === "chunk") await writeCode(file.fileName, file.code, file.map?.toString());
}

/**
 * What comes into one file each, but for what pages and programs load as well, which must stay small: `core` is what
 * `import "perdure"` needs; `onNode` what `perdure/node` adds that nobody needs who may run elsewhere. The command opens a
 * directory with it.
 */
async function sharedModules(
  input: Readonly<Record<string, string>>,
): Promise<{ readonly core: ReadonlySet<string>; readonly onNode: ReadonlySet<string> }> {
  const { metafile } = await build({
    ...{ absWorkingDir: root, entryPoints: Object.values(input), outdir: dist, write: false, metafile: true },
    ...{ bundle: true, splitting: true, format: "esm", platform: "node", packages: "external", logLevel: "warning" },
  });
  const reached = (sources: readonly string[]) => {
    const found = new Set<string>();
    const visit = (path: string) => {
      if (found.has(path)) return;
      found.add(path);
      for (const { kind, path: next, external } of metafile.inputs[path]?.imports ?? [])
        if (kind === "import-statement" && external !== true) visit(next);
    };
    for (const source of sources) visit(source.replace("./", ""));
    return found;
  };
  const apart = reached([...PAGES.map((name) => input[name] ?? ""), ...PROGRAMS]);
  const faces = new Set(Object.values(input).map((source) => join(root, source)));
  const anywhere = reached(Object.entries(entries).flatMap(([name, source]) => (ON_NODE.has(name) ? [] : [source])));
  // Not the faces: each has its public names, and no others.
  const ours = (paths: readonly string[]) =>
    paths.filter((path) => !apart.has(path) && !faces.has(join(root, path))).map((path) => join(root, path));
  return {
    core: new Set(ours([...reached([input["index"] ?? ""])])),
    onNode: new Set(ours([...reached([input["node"] ?? ""])].filter((path) => !anywhere.has(path)))),
  };
}

/** Names stay; lines are short enough to be told apart in a stack trace, by the maps and without them. */
async function writeCode(name: string, code: string, map: string | undefined): Promise<void> {
  const data =
    map === undefined ? "" : `//# sourceMappingURL=data:application/json;base64,${Buffer.from(map).toString("base64")}`;
  const short = await transform(`${code}\n${data}`, {
    ...{ format: "esm", target: TARGET, charset: "utf8", minifyWhitespace: true, minifySyntax: true },
    ...{ lineLimit: LINE_LENGTH, sourcemap: map !== undefined && "external", sourcesContent: false },
  });
  // What only names what others have has no lines of its own.
  const thin = map === undefined ? "" : thinMap(short.map);
  if (thin !== "") writeFileSync(join(dist, `${name}.map`), thin);
  writeFileSync(join(dist, name), thin === "" ? short.code : `${short.code}//# sourceMappingURL=${name}.map\n`);
}

/** Modules that need Node and that code without Node loads by `import()`, by the name of their file in `dist`. */
function nodeModules(): Record<string, string> {
  const found = sourceFiles(root, "src").flatMap((file) =>
    isTest(file.path) || file.path.includes("/node/")
      ? []
      : parseSource(file)
          .modules.filter(({ dynamic }) => dynamic === true)
          .map(({ specifier }) => relativeTarget(file.path, specifier) ?? "")
          .filter((target) => NODE_MODULE.test(target)),
  );
  return Object.fromEntries(found.map((path) => [`node-${nameOf(path)}`, path]));
}

function nameOf(path: string): string {
  const [, folder = "", name = ""] = NODE_MODULE.exec(path) ?? [];
  return `${folder}-${name}`;
}

/** Keeps one place for each line: enough for stack traces, and a seventh of the size. */
function thinMap(text: string): string {
  const map = JSON.parse(text) as { mappings: string; names: string[] };
  const lines = decode(map.mappings).map((places) =>
    places.slice(0, 1).map((place) => place.slice(0, 4) as typeof place),
  );
  return JSON.stringify({ ...map, names: [], mappings: encode(lines) });
}

function isPackage(id: string): boolean {
  return !id.startsWith(".") && !id.startsWith("/");
}

async function bundleTypes(): Promise<void> {
  const folder = mkdtempSync(join(root, "dist", "types-"));
  try {
    const compiled = await runTool("tsc", ["-p", "tsconfig.build.json", "--outDir", folder, "--pretty", "false"], root);
    if (!compiled.ok) throw new Error(compiled.output);
    const declared = (source: string) => join(folder, source.replace(/^\.\/src\//, "").replace(/\.ts$/, ".d.ts"));
    const bundle = await rolldown({
      cwd: root,
      checks: QUIET,
      input: Object.fromEntries(Object.entries(entries).map(([name, source]) => [name, declared(source)])),
      external: isPackage,
      plugins: [dts({ dtsInput: true, tsconfig: false, sourcemap: false })],
    });
    await bundle.write({ dir: dist, format: "es", chunkFileNames: "[name]-[hash].js" });
    await bundle.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The pages that `perdure docs` shows, with tables as narrow as they can be: what makes them wide is for those who edit them. */
function writePages(): void {
  mkdirSync(join(dist, "docs"));
  for (const name of readdirSync(join(root, "docs"))) {
    if (FOR_MAINTAINERS.has(name)) continue;
    const lines = readFileSync(join(root, "docs", name), "utf8").split("\n");
    const narrow = lines.map((line) =>
      line.startsWith("|") ? line.replaceAll(/ {2,}/g, " ").replaceAll(/-{4,}/g, "---") : line,
    );
    writeFileSync(join(dist, "docs", name), narrow.join("\n"));
  }
}

async function lintPackage(): Promise<string[]> {
  const { messages, pkg } = await publint({ pkgDir: root, strict: true });
  return messages
    .filter(({ type }) => type === "error")
    .map((message) => `publint: ${formatMessage(message, pkg ?? {}) ?? message.code}`);
}
