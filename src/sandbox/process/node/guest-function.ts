import type { RunRequest } from "../../sandbox.ts";
import { stripTypes } from "../../quickjs/node/strip-types.ts";
import { rewriteImports } from "../../quickjs/rewrite-imports.ts";

/** The body of the guest's function as a module that the jail's Node imports. @throws SyntaxError for types that cannot be taken off */
export function functionFile(request: RunRequest): Record<string, string> {
  if (request.language !== "js" && request.language !== "ts") return {};
  // On one line with the code, so that lines count as in what was given.
  const source = `export default async function (input) { ${rewriteImports(request.code)}\n}\n`;
  if (request.language === "js") return { "main.mjs": source };
  const stripped = stripTypes(source);
  if (stripped.ok) return { "main.mjs": stripped.code };
  throw new SyntaxError(stripped.line === undefined ? stripped.message : `${stripped.message} (line ${stripped.line})`);
}
