import { parseSource, type SyntaxNode } from "./parse-source.ts";
import { sourceFiles } from "./source-tree.ts";

/** The most classes that stand on one another. What a class can do is read from its parts, not up a ladder. */
const MAX_LADDER = 3;
/** The most symbols by which classes that users extend reach each other; all plain names belong to those users. */
const MAX_SYMBOLS = 5;
/** Where such symbols are. */
const SYMBOL_PLACES = /^src\/(?:agent\/|parts\/|port\.ts$)/;

/** Classes of `src/` stand on at most two others, and the agent classes share few symbols. */
export function checkHouse(root: string): string[] {
  const above = new Map<string, string>();
  const files = new Map<string, string>();
  const symbols: string[] = [];
  for (const file of sourceFiles(root, "src")) {
    for (const statement of parseSource(file).body) {
      const isExported = statement.type === "ExportNamedDeclaration";
      const node = (isExported ? statement.declaration : statement) as SyntaxNode | null;
      if (node?.type === "ClassDeclaration") {
        const { id, superClass } = node as unknown as { id: { name: string }; superClass: { name?: string } | null };
        files.set(id.name, file.path);
        if (superClass?.name !== undefined) above.set(id.name, superClass.name);
      }
      if (!isExported || node === null || !SYMBOL_PLACES.test(file.path)) continue;
      const text = file.text.slice(node.start, node.end);
      const name = /^const (\w+): unique symbol\b/.exec(text)?.[1];
      if (name !== undefined) symbols.push(`${name} (${file.path})`);
    }
  }
  const found: string[] = [];
  for (const [name, path] of files) {
    const ladder = [name];
    for (let up = above.get(name); up !== undefined && files.has(up) && !ladder.includes(up); up = above.get(up))
      ladder.push(up);
    if (ladder.length > MAX_LADDER)
      found.push(`${path}: ${ladder.length} classes in a row (at most ${MAX_LADDER}): ${ladder.join(" < ")}`);
  }
  if (symbols.length > MAX_SYMBOLS)
    found.push(`${symbols.length} symbols between classes (at most ${MAX_SYMBOLS}): ${symbols.join(", ")}`);
  return found;
}
