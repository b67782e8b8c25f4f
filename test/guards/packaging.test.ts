import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..", "..");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly files: readonly string[];
  readonly dependencies: Record<string, string>;
  readonly peerDependencies: Record<string, string>;
  readonly peerDependenciesMeta: Record<string, unknown>;
};
const readme = readFileSync(join(root, "README.md"), "utf8");

test("the package brings what was built, its docs among it, and names no place in the network that it does not have", () => {
  expect(manifest.files).toContain("dist");
  for (const field of ["repository", "homepage", "bugs"]) expect(manifest).not.toHaveProperty(field);
});

test("the README names every optional peer, and the version of the AI SDK that is asked for", () => {
  for (const name of Object.keys(manifest.peerDependenciesMeta)) expect(readme).toContain(name);
  expect(manifest.peerDependencies["ai"]).toBe("^7.0.0");
  expect(readme).toContain("`ai@7`");
});
