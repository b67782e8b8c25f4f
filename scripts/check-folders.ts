import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { folderOrder, mapTable, placeOf } from "./folder-order.ts";
import { parseSource, relativeTarget } from "./parse-source.ts";
import { isTest, readManifest, sourceFiles } from "./source-tree.ts";

const rank = new Map(folderOrder.map((place, index) => [place.name, { ...place, index }]));

/**
 * `src/` reads top to bottom: what ships imports only from places above its own. Types count too, because a
 * type that flows up is knowledge that flows up. Tests may import from anywhere, but nothing imports a test.
 */
export function checkFolders(root: string): string[] {
  const { name } = readManifest(root);
  const violations: string[] = [];
  for (const file of sourceFiles(root, "src")) {
    const from = rank.get(placeOf(file.path));
    if (from === undefined) {
      violations.push(`${file.path}: "${placeOf(file.path)}" has no line in scripts/folder-order.ts`);
      continue;
    }
    if (isTest(file.path)) continue;
    for (const { specifier, line } of parseSource(file).modules) {
      const at = `${file.path}:${line}`;
      if (specifier === name || specifier.startsWith(`${name}/`)) {
        violations.push(`${at}: imports the package by its own name; use a relative path`);
      }
      const target = relativeTarget(file.path, specifier);
      if (target === undefined) continue;
      if (!target.startsWith("src/")) violations.push(`${at}: imports ${target}, which is outside of src`);
      else if (isTest(target)) violations.push(`${at}: imports a test, ${target}`);
      else if (!mayImport(from, placeOf(target))) {
        violations.push(`${at}: ${from.name} may not import from ${placeOf(target)} (${specifier})`);
      }
    }
  }
  return [...violations, ...checkMap(root)];
}

/** The map in AGENTS.md is this order, and names what is there. A tree without a map has nothing to compare. */
function checkMap(root: string): string[] {
  const path = join(root, "AGENTS.md");
  if (!existsSync(path)) return [];
  const gone = folderOrder.filter(({ name }) => !existsSync(join(root, "src", name)));
  const isOld = !readFileSync(path, "utf8").includes(mapTable());
  return [
    ...gone.map(({ name }) => `scripts/folder-order.ts: there is no src/${name}`),
    ...(isOld ? ["AGENTS.md: its table is not what scripts/folder-order.ts says; run npm run map"] : []),
  ];
}

function mayImport(from: { name: string; only?: readonly string[]; index: number }, target: string): boolean {
  if (target === from.name) return true;
  const to = rank.get(target);
  if (to === undefined) return true; // Reported once, for the files of that folder.
  return from.only === undefined ? to.index < from.index : from.only.includes(target);
}
