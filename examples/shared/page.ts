import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build, defaultClientConditions } from "vite";

/** Where what was built lies. `.perdure/` is not for git, and each process that runs an example has its own. */
const built = ".perdure/pages";
const examples = join(import.meta.dirname, "..");

/** `perdure/react` in a page means `src` in this repository, as it does in the programs. */
const conditions = ["perdure-source", ...defaultClientConditions];

/**
 * Bundles the page in `folder`: its `index.html` and all that it loads. A `vite.config.ts` beside it counts. A page that
 * was built before is taken from where `PERDURE_PAGES` says.
 * @returns the folder with the files to serve.
 * @throws what Vite reports when the page does not build.
 */
export async function buildPage(folder: string): Promise<string> {
  const { PERDURE_PAGES: before } = process.env;
  const name = relative(examples, folder);
  return before === undefined ? buildPageTo(folder, resolve(built, name)) : resolve(before, name);
}

/** Bundles the page in `folder` into `outDir`. */
export async function buildPageTo(folder: string, outDir: string): Promise<string> {
  const base = { root: folder, logLevel: "warn", resolve: { conditions } } as const;
  await build({ ...base, build: { outDir, emptyOutDir: true } });
  return outDir;
}

/**
 * Bundles a package into one module that a browser can load as it is.
 * @param name as in an import: `perdure/client`.
 * @returns the source of the module.
 */
export async function bundleModule(name: string): Promise<string> {
  const lib = { entry: fileURLToPath(import.meta.resolve(name)), formats: ["es" as const] };
  const base = { configFile: false, logLevel: "warn", resolve: { conditions } } as const;
  const result = await build({ ...base, build: { write: false, lib } });
  const output = Array.isArray(result) ? result[0] : undefined;
  const [module] = output?.output ?? [];
  if (module === undefined) throw new Error(`${name} gave no module.`);
  return module.code;
}
