import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A text file of the tree. `path` is relative to the root, with `/`. */
export interface TextFile {
  readonly path: string;
  readonly text: string;
}

const skipped = new Set(["node_modules", "dist", "coverage", ".git", ".perdure"]);

/** The paths of all files at or under `start` (a file or folder of `root`), sorted. A missing start has none. */
export function listPaths(root: string, start: string): string[] {
  if (!existsSync(join(root, start))) return [];
  const found: string[] = [];
  const visit = (folder: string) => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      if (skipped.has(entry.name)) continue;
      const path = folder === "." ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) visit(path);
      else if (entry.isFile()) found.push(path);
    }
  };
  visit(start);
  return found.sort();
}

/** The TypeScript files under the given folders of `root`. */
export function sourceFiles(root: string, ...folders: string[]): TextFile[] {
  return folders
    .flatMap((folder) => listPaths(root, folder))
    .filter((path) => /\.tsx?$/.test(path) && !path.endsWith(".d.ts"))
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

/** Whether a file is a test: it is never published, so rules about what ships do not bind it. */
export function isTest(path: string): boolean {
  return /\.test\.tsx?$/.test(path);
}

/** The fields of package.json that the guards read. */
export interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, unknown>>;
}

/** Reads `package.json` of `root`. @throws when it has no name or no exports */
export function readManifest(root: string): Manifest {
  const parsed: unknown = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const { name, exports } = parsed as Partial<Manifest>;
  if (typeof name !== "string" || typeof exports !== "object") throw new Error("package.json: needs name and exports");
  return { name, exports };
}
