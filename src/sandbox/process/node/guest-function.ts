import { stripTypeScriptTypes } from "node:module";
import type { RunRequest } from "../../sandbox.ts";

/** The body of the guest's function as a module that the jail's Node imports. @throws SyntaxError for types that cannot be taken off */
export function functionFile(request: RunRequest): Record<string, string> {
  if (request.language !== "js" && request.language !== "ts") return {};
  // On one line with the code, so that lines count as in what was given.
  const source = `export default async function (input) { ${request.code}\n}\n`;
  return { "main.mjs": request.language === "ts" ? stripTypes(source) : source };
}

function stripTypes(source: string): string {
  const { emitWarning } = process;
  try {
    // Node says on every first use that this is new.
    process.emitWarning = () => undefined;
    return stripTypeScriptTypes(source, { mode: "strip" });
  } finally {
    process.emitWarning = emitWarning;
  }
}
