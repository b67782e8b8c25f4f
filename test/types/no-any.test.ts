import { readdirSync, readFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { tempDir } from "../host/open-host.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Declarations, as users of the package get them, without comments and texts. */
function declarations(dir: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const name of readdirSync(dir, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".d.ts")) continue;
    const text = readFileSync(join(dir, name), "utf8");
    found.set(name, text.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"/g, ""));
  }
  return found;
}

test("no `any` in what the package declares, written or inferred", () => {
  const out = tempDir();
  const flags = [
    "-p",
    "tsconfig.build.json",
    "--outDir",
    out,
    "--declaration",
    "--emitDeclarationOnly",
    "--noEmit",
    "false",
  ];
  const built = spawnSync(join(root, "node_modules", ".bin", "tsc"), flags, { cwd: root, encoding: "utf8" });
  expect(built.error).toBeUndefined();
  const found = declarations(out);
  expect(found.get("index.d.ts")).toContain("Agent");
  const withAny = [...found].filter(([, text]) => /\bany\b/.test(text)).map(([name]) => name);
  expect(withAny).toEqual([]);
});
