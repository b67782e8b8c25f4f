// Bundles a Worker for the platform as apps would: `npm run -s workerd:build -- ENTRY OUT`.
import { join, resolve } from "node:path";
import { build, type Plugin } from "esbuild";

/** What this package and its tests may import from there. */
const PLATFORM = /^(?:cloudflare:|node:async_hooks$)/;
/** Modules that Node alone can run: they are loaded when something asks for them. */
const NEEDS_NODE = /\/node\/[^/]+\.ts$/;

/** What was bundled, and what it still asks of the platform. */
export interface Bundle {
  readonly file: string;
  readonly imports: readonly string[];
}

/** What the package's `imports` do in the place of these modules, where it is bundled from its sources. */
const needsNode: Plugin = {
  name: "needs-node",
  setup(bundler) {
    const path = join(import.meta.dirname, "../../src/host/cloudflare/needs-node.ts");
    bundler.onResolve({ filter: NEEDS_NODE }, ({ kind }) => (kind === "dynamic-import" ? { path } : undefined));
  },
};

/** Bundles a module that exports a Worker. */
export async function bundleWorker(entry: string, out: string): Promise<Bundle> {
  const { metafile } = await build({
    ...{ entryPoints: [resolve(entry)], outfile: resolve(out), bundle: true, format: "esm", target: "es2024" },
    ...{ platform: "neutral", mainFields: ["module", "main"], logLevel: "warning", metafile: true },
    conditions: ["perdure-source", "workerd", "worker", "browser", "import"],
    loader: { ".html": "text" },
    define: { "process.env.NODE_ENV": '"production"' },
    ...{ external: ["cloudflare:*", "node:*"], keepNames: true, minifyWhitespace: true, plugins: [needsNode] },
  });
  const found = Object.values(metafile.outputs).flatMap(({ imports }) => imports.filter(({ external }) => external));
  const imports = [...new Set(found.map(({ path }) => path))].sort();
  const strangers = imports.filter((path) => !PLATFORM.test(path));
  if (strangers.length > 0) throw new Error(`the bundle imports what the platform has not: ${strangers.join(", ")}`);
  return { file: resolve(out), imports };
}

const [entry, out] = process.argv.slice(2);
if (process.argv[1] === import.meta.filename) {
  if (entry === undefined || out === undefined) throw new Error("workerd:build needs ENTRY and OUT");
  const { file, imports } = await bundleWorker(entry, out);
  console.log(`${file}: imports ${imports.join(", ")}`);
}
