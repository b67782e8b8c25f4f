import { existsSync } from "node:fs";
import { join } from "node:path";
import { isNode, parseSource, relativeTarget } from "./parse-source.ts";
import type { ParsedSource, SyntaxNode } from "./parse-source.ts";
import { isTest, readManifest, sourceFiles } from "./source-tree.ts";

/**
 * The public face is one list, and each thing on it is explained: `exports` of package.json and the
 * `index.ts` files of `src` are the same set, nothing uses `export *`, and every name that a public entry
 * exports has a doc comment where it is declared. Inside, a file exports what another one imports, a test or a program too.
 */
export function checkExports(root: string): string[] {
  const violations: string[] = [];
  const entries = new Set<string>();
  for (const [subpath, target] of Object.entries(readManifest(root).exports)) {
    if (typeof target === "string") {
      if (!existsSync(join(root, target)))
        violations.push(`package.json: exports "${subpath}": ${target} is not there`);
      continue;
    }
    const { ["perdure-source"]: source, types, default: built } = target as Record<string, string | undefined>;
    if (source === undefined || !/^\.\/src\/.+\.tsx?$/.test(source)) {
      violations.push(`package.json: exports "${subpath}": "perdure-source" must name a TypeScript file in src`);
      continue;
    }
    // All that is built stands in one folder.
    const name = subpath === "." ? "index" : subpath.slice(2).replaceAll("/", "-");
    if (types !== `./dist/${name}.d.ts` || built !== `./dist/${name}.js`) {
      violations.push(`package.json: exports "${subpath}": it is built to ./dist/${name}.js and ./dist/${name}.d.ts`);
    }
    if (existsSync(join(root, source))) entries.add(source.slice(2));
    else violations.push(`package.json: exports "${subpath}": ${source} is not there`);
  }

  const parsed = new Map<string, ParsedSource>();
  for (const file of sourceFiles(root, "src").filter(({ path }) => !isTest(path))) {
    const source = parseSource(file);
    parsed.set(file.path, source);
    if (/(^|\/)index\.tsx?$/.test(file.path) && !entries.has(file.path)) {
      violations.push(`${file.path}: an index that package.json does not export; import the files themselves`);
    }
    for (const node of source.body) {
      if (node.type === "ExportAllDeclaration") {
        violations.push(`${file.path}:${source.lineOf(node.start)}: export *; name what is exported`);
      }
    }
  }
  for (const entry of entries) {
    const source = parsed.get(entry);
    if (source !== undefined) violations.push(...undocumented(source, parsed));
  }
  const imported = importedNames(root);
  for (const [path, source] of parsed) {
    if (entries.has(path) || imported.has(`${path}#*`)) continue;
    for (const name of exportedNames(source)) {
      if (!imported.has(`${path}#${name}`))
        violations.push(`${path}: "${name}" is exported, and no other file uses it`);
    }
  }
  return violations;
}

/** What is imported from files of `src`, such as `src/store/turn.ts#insertTurn`; `#*` is all of a file. */
function importedNames(root: string): ReadonlySet<string> {
  const found = new Set<string>();
  for (const file of sourceFiles(root, ".")) {
    const { body, modules } = parseSource(file);
    const note = (specifier: string, name: string) => found.add(`${relativeTarget(file.path, specifier)}#${name}`);
    for (const { specifier, dynamic } of modules) if (dynamic === true) note(specifier, "*");
    for (const node of body) {
      if (!isNode(node["source"])) continue;
      for (const specifier of (node["specifiers"] ?? []) as readonly SyntaxNode[]) {
        const name = nameOf(specifier[node.type === "ImportDeclaration" ? "imported" : "local"]);
        note(String(node["source"]["value"]), specifier.type === "ImportNamespaceSpecifier" ? "*" : name);
      }
    }
  }
  return found;
}

/** A violation for each name that `entry` exports and that has no doc comment at its declaration. */
function undocumented(entry: ParsedSource, parsed: ReadonlyMap<string, ParsedSource>): string[] {
  const violations: string[] = [];
  for (const name of exportedNames(entry)) {
    const found = findDeclaration(entry, name, parsed, 0);
    if (found === "elsewhere") continue;
    if (found === undefined) violations.push(`${entry.path}: cannot find where "${name}" is declared`);
    else if (!hasDoc(found.source, found.node)) {
      const at = `${found.source.path}:${found.source.lineOf(found.node.start)}`;
      violations.push(`${at}: "${name}" is public (${entry.path}) and has no doc comment`);
    }
  }
  return violations;
}

/** The names that a file exports, in its order. */
export function exportedNames(source: ParsedSource): string[] {
  return source.body
    .filter((node) => node.type === "ExportNamedDeclaration")
    .flatMap((node) => [
      ...declaredNames(node["declaration"]),
      ...(node["specifiers"] as readonly SyntaxNode[]).map((specifier) => nameOf(specifier["exported"])),
    ]);
}

interface Declaration {
  readonly source: ParsedSource;
  readonly node: SyntaxNode;
}

/** More re-exports in a row than this is a knot, not a path. */
const maxHops = 8;

/** Follows re-exports and imports to the statement that declares `name`; `elsewhere` is another package. */
function findDeclaration(
  source: ParsedSource,
  name: string,
  parsed: ReadonlyMap<string, ParsedSource>,
  hops: number,
): Declaration | "elsewhere" | undefined {
  if (hops > maxHops) return undefined;
  const follow = (from: unknown, original: string) => {
    const specifier = isNode(from) ? String(from["value"]) : "";
    const target = relativeTarget(source.path, specifier);
    if (target === undefined) return "elsewhere";
    const next = parsed.get(target);
    return next === undefined ? undefined : findDeclaration(next, original, parsed, hops + 1);
  };
  for (const node of source.body) {
    const isExport = node.type === "ExportNamedDeclaration";
    if (declaredNames(isExport ? node["declaration"] : node).includes(name)) return { source, node };
    if (!isExport && node.type !== "ImportDeclaration") continue;
    for (const specifier of node["specifiers"] as readonly SyntaxNode[]) {
      if (nameOf(specifier[isExport ? "exported" : "local"]) !== name) continue;
      if (specifier.type === "ImportNamespaceSpecifier") return "elsewhere";
      const original = nameOf(specifier[isExport ? "local" : "imported"]);
      if (node["source"] !== null) return follow(node["source"], original);
      if (original !== name) return findDeclaration(source, original, parsed, hops + 1);
    }
  }
  return undefined;
}

function declaredNames(declaration: unknown): string[] {
  if (!isNode(declaration)) return [];
  if (declaration.type === "VariableDeclaration") {
    return (declaration["declarations"] as readonly SyntaxNode[]).map((one) => nameOf(one["id"]));
  }
  return /Declaration$|^TSDeclareFunction$/.test(declaration.type) ? [nameOf(declaration["id"])] : [];
}

function nameOf(identifier: unknown): string {
  if (!isNode(identifier)) return "";
  return String(identifier["name"] ?? identifier["value"]);
}

/** Whether a doc comment ends right above the statement. */
function hasDoc(source: ParsedSource, node: SyntaxNode): boolean {
  return source.comments.some(
    (comment) =>
      comment.type === "Block" &&
      comment.value.startsWith("*") &&
      comment.end <= node.start &&
      source.text.slice(comment.end, node.start).trim() === "",
  );
}
