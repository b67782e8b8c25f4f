import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { makeOnce } from "./make-once.ts";
import { runFolder } from "./run-folder.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const traces = fileURLToPath(new URL("./source-traces.ts", import.meta.url));
/** The first line of every program. */
const start = `import { traceSources } from ${JSON.stringify(traces)};traceSources();`;
const FILE = "program.js";
/** Adapters are loaded by those alone who use them, and bring more than a bundle takes. */
const ADAPTERS = ["telegram", "slack", "discord", "github"].map((one) => `@chat-adapter/${one}`);
/** What starts workers and processes finds them beside its own file: it stays where it is. */
const WORKERS = /^\.\/node\//;

/**
 * A program as one file, for matrices that start it hundreds of times: otherwise it is hundreds of modules, and takes
 * more than twice as long to start. Bundled once in a run; its stack traces name the sources.
 */
export async function bundleProgram(program: URL): Promise<URL> {
  const path = fileURLToPath(program);
  const name = relative(root, path).replace(/\W+/g, "-");
  const home = await makeOnce(join(runFolder(), "programs", name), (part) => bundle(path, part));
  return pathToFileURL(join(home, FILE));
}

async function bundle(path: string, outDir: string): Promise<void> {
  // Slow to load, and most test files find the bundle.
  const { build, defaultServerConditions } = await import("vite");
  const conditions = ["perdure-source", ...defaultServerConditions];
  await build({
    root,
    configFile: false,
    logLevel: "warn",
    resolve: { conditions },
    ssr: { noExternal: true, external: ["better-sqlite3", "vite", ...ADAPTERS], resolve: { conditions } },
    build: {
      ssr: path,
      outDir,
      emptyOutDir: false,
      target: "esnext",
      minify: false,
      sourcemap: true,
      rolldownOptions: { output: { entryFileNames: FILE, codeSplitting: false } },
    },
    plugins: [
      {
        name: "workers",
        enforce: "pre",
        async resolveId(id, importer) {
          const found = WORKERS.test(id) ? await this.resolve(id, importer, { skipSelf: true }) : null;
          return found && { id: pathToFileURL(found.id).href, external: true };
        },
      },
      { name: "traces", transform: (code, id) => (id === path ? { code: start + code, map: null } : undefined) },
    ],
  });
}
