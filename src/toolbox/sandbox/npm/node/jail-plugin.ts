import { readFile, realpath } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { extname, join, sep } from "node:path";
import type { Loader, OnLoadResult, Plugin } from "esbuild";
import { packageOf } from "../package-names.ts";

/** The one file that is ours: it asks for what the code wants of a package. */
export const ENTRY = "perdure-entry";
const OURS = "perdure";

const loaders: Readonly<Record<string, Loader>> = {
  ...{ ".js": "js", ".mjs": "js", ".cjs": "js", ".jsx": "jsx", ".json": "json" },
  ...{ ".ts": "ts", ".mts": "ts", ".cts": "ts", ".tsx": "tsx" },
};

const MAX_FILE_BYTES = 8 << 20;

/** What the plugin lets esbuild see. */
interface Jail {
  readonly store: string;
  readonly allowed: readonly string[];
  /** The text of the entry. */
  readonly entry: string;
}

/**
 * Keeps esbuild within the store. The entry may import only the allowed packages; their imports resolve as usual; and each file
 * is read here, after its real path proved to be in the store. However a path came about (links, `exports`, `browser`, `..`),
 * nothing else gets into a bundle.
 */
export function jailPlugin({ store, allowed, entry }: Jail): Plugin {
  let roots: Promise<readonly string[]> | undefined;
  const rootsOf = () => (roots ??= findRoots(store, allowed));
  return {
    name: "perdure-jail",
    setup(build) {
      build.onResolve({ filter: /.*/ }, ({ path, kind, namespace }) => {
        if (kind === "entry-point") return { path: ENTRY, namespace: OURS };
        if (namespace === OURS) {
          const name = packageOf(path);
          if (name === undefined || !allowed.includes(name))
            return refuse(`"${path.slice(0, 200)}" cannot be imported.`);
          return undefined;
        }
        if (isBuiltin(path)) {
          // Often only tried. What stays of it in the bundle throws when it is reached.
          if (kind === "require-call" || kind === "require-resolve" || kind === "dynamic-import")
            return { path, external: true };
          return refuse(`It needs "${path}" of Node, which the sandbox does not have.`);
        }
        if (/^(?:data|https?|file|blob):|^\/\//i.test(path) || path.includes("\0"))
          return refuse(`A package imports "${path.slice(0, 100)}", which is refused.`);
        return undefined;
      });
      build.onLoad({ filter: /.*/, namespace: OURS }, () => ({ contents: entry, loader: "js", resolveDir: store }));
      build.onLoad({ filter: /.*/ }, async ({ path, namespace, with: attributes }): Promise<OnLoadResult> => {
        if (namespace !== "file") return refuse(`A package reads from "${namespace}", which is refused.`);
        const loader = loaders[extname(path).toLowerCase()];
        if (loader === undefined) return refuse("A package imports a file that is neither JavaScript nor JSON.");
        const type = attributes["type"];
        if (Object.keys(attributes).length > (type === undefined ? 0 : 1) || (type !== undefined && type !== loader)) {
          return refuse("A package imports a file in a way that is refused.");
        }
        const real = await realpath(path);
        const inside = (await rootsOf()).some((root) => real.startsWith(root + sep));
        if (!inside) return refuse("A package reaches out of the store of packages, which is refused.");
        if (loaders[extname(real).toLowerCase()] !== loader)
          return refuse("A package has a link that pretends to be another kind of file.");
        const contents = await readFile(real);
        if (contents.byteLength > MAX_FILE_BYTES) return refuse("A package has a file that is too large.");
        return { contents, loader };
      });
    },
  };
}

/** Marks a message as ours: of others, only some words are told. */
export const REFUSED = "perdure-refused";

/** How a plugin refuses. */
export function refuse(text: string) {
  return { errors: [{ text, detail: REFUSED }] };
}

/** The store, and what the operator has linked into it: packages that are used where they are. */
async function findRoots(store: string, allowed: readonly string[]): Promise<string[]> {
  const linked = allowed.map((name) => realpath(join(store, "node_modules", name)).catch(() => undefined));
  const found = await Promise.all([realpath(join(store, "node_modules")).catch(() => undefined), ...linked]);
  return found.filter((path) => path !== undefined);
}
