import { type ModuleRef, parseSource, relativeTarget } from "./parse-source.ts";
import { sourceFiles } from "./source-tree.ts";

/**
 * No group of files in `src/` imports itself in a circle, by types neither: files that know each other's types can only
 * be read together. A dynamic `import()` counts among values; a part that is loaded late may name the types of its loader.
 */
export function checkCycles(root: string): string[] {
  const values = new Map<string, string[]>();
  const all = new Map<string, string[]>();
  for (const file of sourceFiles(root, "src")) {
    const { modules } = parseSource(file);
    const targets = (some: readonly ModuleRef[]) =>
      some.flatMap(({ specifier }) => relativeTarget(file.path, specifier) ?? []);
    values.set(file.path, targets(modules.filter(({ kind }) => kind === "value")));
    all.set(file.path, targets(modules.filter(({ dynamic }) => dynamic !== true)));
  }
  const byValue = circles(values);
  const isByValue = (group: readonly string[]) =>
    group.every((file, at) => at === 0 || values.get(group[at - 1] ?? "")?.includes(file) === true);
  const byType = circles(all).filter((group) => !isByValue(group));
  return [
    ...byValue.map((group) => `value imports go in a circle: ${group.join(" -> ")}`),
    ...byType.map((group) => `imports of types go in a circle: ${group.join(" -> ")}`),
  ];
}

/** One circle, as the walk met it, for each edge that leads back onto the path being walked. */
function circles(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const found: string[][] = [];
  const done = new Set<string>();
  const trail: string[] = [];
  const visit = (file: string) => {
    const start = trail.indexOf(file);
    if (start >= 0) found.push([...trail.slice(start), file]);
    if (start >= 0 || done.has(file)) return;
    trail.push(file);
    for (const target of graph.get(file) ?? []) visit(target);
    trail.pop();
    done.add(file);
  };
  for (const file of graph.keys()) visit(file);
  return found;
}
