import * as nodeModule from "node:module";
import { sep } from "node:path";
import { fileURLToPath } from "node:url";
import { PerdureError } from "../../base/error.ts";

let graphs = 0;

/** A text without the numbers that a {@link ModuleGraph} puts into URLs, for people. */
export function withoutVersions(text: string): string {
  return text.replace(/\?perdure\d+=\d+(?:&perdure\d+=\d+)*/g, "");
}

/**
 * Knows which modules below a directory import which, and lets Node load those that changed anew. Node keeps every
 * module that it has loaded under its URL, for ever; so a changed one gets another URL, by a number in its query, and so
 * does everything that imports it. Modules outside the directory, packages, and what `require()` loads keep their old
 * code. The old modules stay in memory: this is for development.
 */
export class ModuleGraph {
  readonly #root: string;
  readonly #key = `perdure${++graphs}`;
  readonly #versions = new Map<string, number>();
  readonly #importers = new Map<string, Set<string>>();
  /** Modules that import something that was not there. */
  readonly #broken = new Set<string>();
  readonly #hooks: { deregister(): void };
  #round = 0;
  /** When everything was last made to be read anew. */
  #floor = 0;

  /**
   * Sees the imports from now on.
   * @param root a real path: Node follows links before it gives a module its URL.
   * @throws PerdureError `bad_config` when this Node has no hooks for modules.
   */
  constructor(root: string) {
    this.#root = root + sep;
    // Newer than the oldest Node that the rest runs on, where an import of this name would not even link.
    const { registerHooks }: Partial<Pick<typeof nodeModule, "registerHooks">> = nodeModule;
    if (registerHooks === undefined) {
      throw new PerdureError("bad_config", `Watching agents needs Node 22.15 or later, not ${process.version}.`);
    }
    this.#hooks = registerHooks({
      resolve: (specifier, context, next) => {
        const importer = this.#own(context.parentURL);
        let resolved: ReturnType<typeof next>;
        try {
          resolved = next(specifier, context);
        } catch (thrown) {
          if (importer !== undefined) this.#broken.add(importer);
          throw thrown;
        }
        const file = this.#own(resolved.url);
        if (file === undefined) return resolved;
        const importers = this.#importers.get(file) ?? new Set();
        if (importer !== undefined) importers.add(importer);
        this.#importers.set(file, importers);
        const version = this.#versions.get(file) ?? this.#floor;
        // `require()` keeps its modules by file name, and knows no queries.
        if (version === 0 || context.conditions.includes("require")) return resolved;
        const url = new URL(resolved.url);
        url.searchParams.set(this.#key, String(version));
        return { ...resolved, url: url.href };
      },
    });
  }

  /** Whether anything has imported this file. */
  knows(file: string): boolean {
    return this.#importers.has(file);
  }

  /** The next import of these files, and of everything that imports them, reads them anew. What was broken, too. */
  touch(files: Iterable<string>): void {
    this.#round++;
    const touched = new Set<string>();
    const waiting = [...files, ...this.#broken];
    this.#broken.clear();
    for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
      if (touched.has(file)) continue;
      touched.add(file);
      this.#versions.set(file, this.#round);
      waiting.push(...(this.#importers.get(file) ?? []));
    }
  }

  /** As {@link ModuleGraph.touch}, for every module below the directory, seen or not. */
  touchAll(): void {
    this.#floor = ++this.#round;
    this.#versions.clear();
    this.#broken.clear();
  }

  close(): void {
    this.#hooks.deregister();
  }

  /** The file of a URL, if it is below the directory and not of a package. */
  #own(url: string | undefined): string | undefined {
    if (url?.startsWith("file:") !== true) return undefined;
    const file = fileURLToPath(url);
    const isOwn = file.startsWith(this.#root) && !file.slice(this.#root.length).split(sep).includes("node_modules");
    return isOwn ? file : undefined;
  }
}
