import { expect, test } from "vitest";
import { rewriteImports } from "./rewrite-imports.ts";

test.each([
  ['import a from "m"', 'const { default: a } = await import("m");'],
  ["import { a, b as c } from 'm';", 'const { a, b: c } = await import("m");'],
  ['import d, { a } from "m";', 'const { default: d, a } = await import("m");'],
  ['import * as all from "m";', 'const all = await import("m");'],
  ['import d, * as all from "m";', 'const all = await import("m"); const d = all.default;'],
  ['import "m";', 'await import("m");'],
  ['import type { T } from "m"; return 1', " return 1"],
  ['import { type T, a } from "m";', 'const { a } = await import("m");'],
  ['// first\nimport a from "m";\nreturn a', '// first\nconst { default: a } = await import("m");\nreturn a'],
  ['import {\n  a,\n  b,\n} from "m";\nx', 'const { a, b } = await import("m");\n\n\n\nx'],
  ["return 1", "return 1"],
  ['const s = `\nimport a from "m";`', 'const s = `\nimport a from "m";`'],
  ["importantThing()", "importantThing()"],
  ['await import("m")', 'await import("m")'],
  ['import("m")', 'import("m")'],
  ["", ""],
])("%j", (code, expected) => {
  expect(rewriteImports(code)).toBe(expected);
});

test("lines stay where they are", () => {
  const code = 'import {\n a\n} from "m";\nimport b from "n"\nthird';
  expect(rewriteImports(code).split("\n").indexOf("third")).toBe(code.split("\n").indexOf("third"));
});

test.each([
  ["spaces", `import ${" ".repeat(200_000)}x`],
  ["names", `import { ${"a, ".repeat(60_000)} } x`],
  ["comments", `${"/* ".repeat(60_000)}`],
  ["words", "import from ".repeat(15_000)],
])("what is made to take forever does not: %s", (_name, code) => {
  expect(rewriteImports(code)).toBe(code);
});
