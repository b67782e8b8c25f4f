import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { exportedNames } from "./check-exports.ts";
import { parseSource } from "./parse-source.ts";
import { readManifest } from "./source-tree.ts";

/** Where the public names are listed. */
export const API_FILE = "api.txt";

/** Every public name by the entry that exports it: what {@link API_FILE} must be. */
export function listApi(root: string): string {
  const parts = Object.entries(readManifest(root).exports).flatMap(([subpath, target]) => {
    const source = typeof target === "object" && target !== null && "perdure-source" in target;
    if (!source) return [];
    const path = String(target["perdure-source"]).replace(/^\.\//, "");
    if (!existsSync(join(root, path))) return [];
    const names = exportedNames(parseSource({ path, text: readFileSync(join(root, path), "utf8") })).sort();
    const entry = subpath.replace(/^\./, readManifest(root).name);
    return [`${entry}: ${names.length} names`, ...names.map((name) => `  ${name}`), ""];
  });
  return parts.join("\n");
}

/** A change of the public face is seen in review: the list is kept beside the code. */
export function checkApi(root: string): string[] {
  const path = join(root, API_FILE);
  const before = new Set(existsSync(path) ? readFileSync(path, "utf8").split("\n") : []);
  const listed = listApi(root);
  const now = new Set(listed.split("\n"));
  if (existsSync(path) && readFileSync(path, "utf8") === listed) return [];
  const added = [...now].filter((line) => !before.has(line)).map((line) => `+ ${line.trim()}`);
  const gone = [...before].filter((line) => !now.has(line)).map((line) => `- ${line.trim()}`);
  return [`${API_FILE}: the public names have changed; if that is meant, run npm run api`, ...added, ...gone];
}
