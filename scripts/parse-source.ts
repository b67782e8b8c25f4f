import { posix } from "node:path";
import { parseSync } from "vite";
import type { TextFile } from "./source-tree.ts";

/** A node of the syntax tree, as far as the guards look at it. */
export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** One module that a file names, in any of the ways that TypeScript has. */
export interface ModuleRef {
  readonly specifier: string;
  /** `type` leaves no trace at run time. An import whose names are all marked `type` one by one does. */
  readonly kind: "value" | "type";
  /** Loaded when the code around it runs: `import("…")`. */
  readonly dynamic?: true;
  readonly line: number;
}

/** A string or template literal. What a template interpolates is a space in `text`. */
export interface StringRef {
  readonly text: string;
  readonly line: number;
}

/** A parsed file. */
export interface ParsedSource {
  readonly path: string;
  readonly text: string;
  readonly body: readonly SyntaxNode[];
  readonly comments: readonly { readonly type: string; readonly value: string; readonly end: number }[];
  readonly modules: readonly ModuleRef[];
  readonly strings: readonly StringRef[];
  readonly lineOf: (offset: number) => number;
}

/** Parses one TypeScript file. @throws Error when the file has a syntax error */
export function parseSource({ path, text }: TextFile): ParsedSource {
  const result = parseSync(path, text, { lang: path.endsWith("x") ? "tsx" : "ts", sourceType: "module" });
  const failure = result.errors[0];
  if (failure !== undefined) throw new Error(`${path}: cannot be parsed: ${failure.message}`);
  const lineOf = (offset: number) => text.slice(0, offset).split("\n").length;
  const modules: ModuleRef[] = [];
  const strings: StringRef[] = [];
  const body = result.program.body as unknown as readonly SyntaxNode[];
  for (const statement of body) {
    walk(statement, (node) => {
      const module = moduleOf(node);
      if (module !== undefined) modules.push({ ...module, line: lineOf(node.start) });
      const string = stringOf(node);
      if (string !== undefined) strings.push({ text: string, line: lineOf(node.start) });
    });
  }
  return { path, text, body, comments: result.comments, modules, strings, lineOf };
}

/** Calls `visit` for `node` and every node in it, parents first. */
export function walk(node: SyntaxNode, visit: (node: SyntaxNode) => void): void {
  visit(node);
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) walk(child, visit);
    }
  }
}

/** Whether a field of a node is itself a node. */
export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string";
}

/** The path of the file that a relative specifier in `from` names, or `undefined` for a package. */
export function relativeTarget(from: string, specifier: string): string | undefined {
  return specifier.startsWith(".") ? posix.join(posix.dirname(from), specifier) : undefined;
}

function moduleOf(node: SyntaxNode): Omit<ModuleRef, "line"> | undefined {
  switch (node.type) {
    case "ImportDeclaration":
      return moduleRef(node["source"], node["importKind"]);
    case "ExportNamedDeclaration":
    case "ExportAllDeclaration":
      return moduleRef(node["source"], node["exportKind"]);
    case "ImportExpression": {
      const module = moduleRef(node["source"], "value");
      return module && { ...module, dynamic: true };
    }
    case "TSImportType":
      return moduleRef(node["source"] ?? node["argument"], "type");
    case "TSExternalModuleReference":
      return moduleRef(node["expression"], "value");
    case "CallExpression": {
      const callee = node["callee"];
      if (!isNode(callee) || callee["name"] !== "require") return undefined;
      return moduleRef((node["arguments"] as readonly unknown[])[0], "value");
    }
    default:
      return undefined;
  }
}

function moduleRef(source: unknown, kind: unknown): Omit<ModuleRef, "line"> | undefined {
  if (!isNode(source)) return undefined;
  const literal = source.type === "TSLiteralType" ? source["literal"] : source;
  const specifier = isNode(literal) ? stringOf(literal) : undefined;
  return specifier === undefined ? undefined : { specifier, kind: kind === "type" ? "type" : "value" };
}

function stringOf(node: SyntaxNode): string | undefined {
  if (node.type === "Literal" && typeof node["value"] === "string") return node["value"];
  if (node.type !== "TemplateLiteral") return undefined;
  const quasis = node["quasis"] as readonly { readonly value: { readonly raw: string } }[];
  return quasis.map((quasi) => quasi.value.raw).join(" ");
}
