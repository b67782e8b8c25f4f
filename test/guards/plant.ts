import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";

/** The root of this repository. */
export const repository = join(import.meta.dirname, "..", "..");

/** Writes a small tree into a temporary folder that is gone when the test ends, and returns its root. */
export function plant(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "perdure-guard-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const [path, text] of Object.entries({ "package.json": manifest({}), ...files })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

/** A package.json with these exports, under the name of the real package. */
export function manifest(exports: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ name: "perdure", type: "module", exports });
}

/** What package.json says about one entry. */
export function entry(stem: string): Record<string, string> {
  return { "perdure-source": `./src/${stem}.ts`, types: `./dist/${stem}.d.ts`, default: `./dist/${stem}.js` };
}

/** The real configuration file of this repository, so that a test sees the rules that are in force. */
export function realConfig(name: string): string {
  return readFileSync(join(repository, name), "utf8");
}

/** The real tsconfig without the ambient types, which a temporary folder does not have. */
export function realTsconfig(): string {
  const config = JSON.parse(realConfig("tsconfig.json")) as { compilerOptions: Record<string, unknown> };
  return JSON.stringify({ ...config, compilerOptions: { ...config.compilerOptions, types: [] } });
}
