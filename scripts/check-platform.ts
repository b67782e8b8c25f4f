import { builtinModules } from "node:module";
import { parseSource, relativeTarget } from "./parse-source.ts";
import { isTest, sourceFiles } from "./source-tree.ts";

/** Where Node may be known, beside folders that are called `node`. Everything else must also run in other hosts. */
const platformFolders = ["src/host/node/", "src/host/cloudflare/", "src/cli/", "src/testing/"];
const platformPackages = new Set(["better-sqlite3", "ws"]);
const builtins = new Set(builtinModules);

/**
 * `node:*`, `cloudflare:*`, `better-sqlite3` and `ws` are imported only where a platform may be known. Types count too. What is in a
 * folder `node` of another place is loaded by `import()` alone: so whoever never asks for it needs no Node.
 */
export function checkPlatform(root: string): string[] {
  const violations: string[] = [];
  for (const file of sourceFiles(root, "src")) {
    if (isTest(file.path) || isPlatformFile(file.path)) continue;
    for (const { specifier, line, kind, dynamic } of parseSource(file).modules) {
      if (isPlatform(specifier))
        violations.push(`${file.path}:${line}: imports "${specifier}"; ask the AgentHost port`);
      const target = relativeTarget(file.path, specifier);
      if (target !== undefined && target.includes("/node/") && kind === "value" && dynamic !== true)
        violations.push(`${file.path}:${line}: imports "${specifier}" at once; use import() where it is needed`);
    }
  }
  return violations;
}

function isPlatformFile(path: string): boolean {
  return path.includes("/node/") || platformFolders.some((folder) => path.startsWith(folder));
}

function isPlatform(specifier: string): boolean {
  const base = specifier.split("/")[0] ?? "";
  return /^(?:node|cloudflare):/.test(specifier) || builtins.has(specifier) || platformPackages.has(base);
}
