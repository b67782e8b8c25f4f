import { readFileSync } from "node:fs";
import { join } from "node:path";
import { listPaths } from "./source-tree.ts";

const textual = /(\.(tsx?|jsx?|mjs|json|md|ya?ml|sh|html|css)|\/run|^LICENSE|^\.\w+)$/;

/** The names are spelled in two pieces so that this file passes its own check. */
const machineFolders = ["wor" + "k", "roo" + "t", "Use" + "rs/\\w+", "hom" + "e/(?!user/)\\w+"];
const rules: readonly { readonly what: string; readonly found: RegExp; readonly in?: string }[] = [
  { what: "a path of one machine", found: new RegExp(`(?<![\\w.)}-])/(${machineFolders.join("|")})/`) },
  {
    what: "a registry's host name",
    found: new RegExp(`\\b(registr${"y"}\\.[\\w-]+\\.\\w|npm\\.pkg\\.|verdacci${"o"}|artifactor${"y"})`),
  },
  { what: "a note for later; do it, or write an issue", found: new RegExp(`\\b(TOD${"O"}|FIXM${"E"})\\b`), in: "src/" },
];

/** What ships and what is committed says nothing about the machine that it was written on. */
export function checkWords(root: string): string[] {
  const violations: string[] = [];
  for (const path of listPaths(root, ".").filter((path) => textual.test(path))) {
    const lines = readFileSync(join(root, path), "utf8").split("\n");
    for (const rule of rules) {
      if (rule.in !== undefined && !path.startsWith(rule.in)) continue;
      lines.forEach((line, index) => {
        const match = rule.found.exec(line);
        if (match !== null) violations.push(`${path}:${index + 1}: ${rule.what}: "${match[0]}"`);
      });
    }
  }
  return violations;
}
