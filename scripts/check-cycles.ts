import { parseSource, relativeTarget } from "./parse-source.ts";
import { sourceFiles } from "./source-tree.ts";

/**
 * No group of files in `src/` imports itself in a circle. Only imports that exist at run time count; a
 * dynamic `import()` does, an `import type` does not.
 */
export function checkCycles(root: string): string[] {
  const graph = new Map<string, string[]>();
  for (const file of sourceFiles(root, "src")) {
    const targets = parseSource(file)
      .modules.filter((module) => module.kind === "value")
      .map((module) => relativeTarget(file.path, module.specifier))
      .filter((target) => target !== undefined);
    graph.set(file.path, targets);
  }
  return circles(graph).map((group) => `value imports go in a circle: ${group.join(" -> ")}`);
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
