import { builtinModules } from "node:module";
import { parseSource } from "./parse-source.ts";
import { isTest, sourceFiles } from "./source-tree.ts";

/** Where Node may be known. Everything else must also run in other hosts. */
const platformFolders = ["src/host/node/", "src/sandbox/", "src/cli/", "src/testing/"];
const platformPackages = new Set(["better-sqlite3", "ws"]);
const builtins = new Set(builtinModules);

/** `node:*`, `better-sqlite3` and `ws` are imported only where a platform may be known. Types count too. */
export function checkPlatform(root: string): string[] {
  const violations: string[] = [];
  for (const file of sourceFiles(root, "src")) {
    if (isTest(file.path) || platformFolders.some((folder) => file.path.startsWith(folder))) continue;
    for (const { specifier, line } of parseSource(file).modules) {
      if (isPlatform(specifier))
        violations.push(`${file.path}:${line}: imports "${specifier}"; ask the AgentHost port`);
    }
  }
  return violations;
}

function isPlatform(specifier: string): boolean {
  const base = specifier.split("/")[0] ?? "";
  return specifier.startsWith("node:") || builtins.has(specifier) || platformPackages.has(base);
}
