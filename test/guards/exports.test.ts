import { expect, test } from "vitest";
import { checkExports } from "../../scripts/check-exports.ts";
import { entry, manifest, plant } from "./plant.ts";

const good = { "package.json": manifest({ ".": entry("index") }) };

test("an export without its file, and one that is built to another place, fail", () => {
  const root = plant({
    "package.json": manifest({
      ".": entry("index"),
      "./node": { ...entry("node/index"), types: "./dist/node.d.ts" },
      "./bare": { default: "./dist/bare.js" },
      "./LICENSE": "./LICENSE",
    }),
    "src/node/index.ts": "export {};\n",
  });
  expect(checkExports(root)).toEqual([
    'package.json: exports ".": ./src/index.ts is not there',
    'package.json: exports "./node": it is built to ./dist/node.js and ./dist/node.d.ts',
    'package.json: exports "./bare": "perdure-source" must name a TypeScript file in src',
    'package.json: exports "./LICENSE": ./LICENSE is not there',
  ]);
});

test("an index that is not exported fails", () => {
  const root = plant({ ...good, "src/index.ts": "export {};\n", "src/store/index.ts": "export {};\n" });
  expect(checkExports(root)).toEqual([
    "src/store/index.ts: an index that package.json does not export; import the files themselves",
  ]);
});

test("export * fails anywhere in src", () => {
  const root = plant({
    ...good,
    "src/index.ts": "export {};\n",
    "src/store/a.ts": '\nexport * from "./b.ts";\nexport * as b from "./b.ts";\n',
    "src/store/b.ts": "export {};\n",
  });
  expect(checkExports(root)).toEqual([
    "src/store/a.ts:2: export *; name what is exported",
    "src/store/a.ts:3: export *; name what is exported",
  ]);
});

test("an export that no other file uses fails; a test, a program and a late import are users", () => {
  const root = plant({
    ...good,
    "src/index.ts": 'import { used } from "./store/a.ts";\n/** One. */\nexport const one = used;\n',
    "src/store/a.ts": "export const used = 1;\nexport const left = 2;\nexport type Left = 3;\n",
    "src/store/a.test.ts": 'import { tested } from "./b.ts";\n',
    "src/store/b.ts": "export const tested = 1;\nexport function timed() {}\n",
    "src/store/c.ts": "export const late = 1;\nexport { late as later };\n",
    "src/store/d.ts": 'void import("./c.ts");\n',
    "bench/b.ts": 'export { timed } from "../src/store/b.ts";\n',
  });
  expect(checkExports(root)).toEqual([
    'src/store/a.ts: "left" is exported, and no other file uses it',
    'src/store/a.ts: "Left" is exported, and no other file uses it',
  ]);
});

test("a public name without a doc comment fails, where it is declared", () => {
  const root = plant({
    ...good,
    "src/index.ts":
      'export { a, b as c } from "./store/a.ts";\nexport type { T } from "./store/b.ts";\nexport { gone } from "./store/b.ts";\n',
    "src/store/a.ts": 'export { b } from "./b.ts";\n// Not a doc comment.\nexport const a = 1;\n',
    "src/store/b.ts": "/** Of something else. */\nconst other = 1;\nexport function b() {}\nexport interface T {}\n",
  });
  expect(checkExports(root)).toEqual([
    'src/store/a.ts:3: "a" is public (src/index.ts) and has no doc comment',
    'src/store/b.ts:3: "c" is public (src/index.ts) and has no doc comment',
    'src/store/b.ts:4: "T" is public (src/index.ts) and has no doc comment',
    'src/index.ts: cannot find where "gone" is declared',
  ]);
});

test("a documented face passes: own declarations, re-exports, renames, imports passed on, other packages", () => {
  const root = plant({
    ...good,
    "src/index.ts": [
      'import { d } from "./store/a.ts";',
      'export { a, type T, b as c } from "./store/a.ts";',
      'export { z } from "zod";',
      "export { d };",
      "/** Own. */",
      "export const own = 1;",
    ].join("\n"),
    "src/store/a.ts": [
      "/** A. */",
      "export class a {}",
      "/** T. */",
      "export type T = string;",
      "/** B, in two shapes. */",
      "export function b(x: string): void;",
      "export function b(x: unknown): void {}",
      "/** D. */",
      "const d = 1;",
      "export { d };",
      "const inner = 1;",
    ].join("\n"),
  });
  expect(checkExports(root)).toEqual([]);
});
