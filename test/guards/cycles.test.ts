import { expect, test } from "vitest";
import { checkCycles } from "../../scripts/check-cycles.ts";
import { plant } from "./plant.ts";

test("a circle of value imports fails, however it is written", () => {
  const root = plant({
    "src/store/a.ts": 'import { b } from "./b.ts";\n',
    "src/store/b.ts": 'export { c } from "./c.ts";\n',
    "src/store/c.ts": 'export const a = () => import("./a.ts");\n',
  });
  expect(checkCycles(root)).toEqual([
    "value imports go in a circle: src/store/a.ts -> src/store/b.ts -> src/store/c.ts -> src/store/a.ts",
  ]);
});

test("a circle behind a file that was already walked is found", () => {
  const root = plant({
    "src/store/a.ts": 'import "./c.ts";\n',
    "src/store/b.ts": 'import "./c.ts";\nimport "./d.ts";\n',
    "src/store/c.ts": "export {};\n",
    "src/store/d.ts": 'import "./b.ts";\n',
  });
  expect(checkCycles(root)).toEqual([
    "value imports go in a circle: src/store/b.ts -> src/store/d.ts -> src/store/b.ts",
  ]);
});

test("names marked type one by one still load the module, so they count", () => {
  const root = plant({
    "src/store/a.ts": 'import { type B } from "./b.ts";\n',
    "src/store/b.ts": 'import "./a.ts";\nexport type B = string;\n',
  });
  expect(checkCycles(root)).toHaveLength(1);
});

test("a circle of which a part is types alone fails", () => {
  const root = plant({
    "src/store/a.ts": 'import type { B } from "./b.ts";\n',
    "src/store/b.ts": 'import "./a.ts";\nexport type B = string;\n',
    "src/tool/c.ts": 'export type D = import("./d.ts").D;\n',
    "src/tool/d.ts": 'import type { D } from "./c.ts";\n',
  });
  expect(checkCycles(root)).toEqual([
    "imports of types go in a circle: src/store/a.ts -> src/store/b.ts -> src/store/a.ts",
    "imports of types go in a circle: src/tool/c.ts -> src/tool/d.ts -> src/tool/c.ts",
  ]);
});

test("a shared import passes, and so does a part that is loaded late and names its loader's types", () => {
  const root = plant({
    "src/store/late.ts": 'import type { A } from "./load.ts";\n',
    "src/store/load.ts": 'export const load = () => import("./late.ts");\n',
    "src/store/a.ts": 'import type { B } from "./b.ts";\nimport "./c.ts";\n',
    "src/store/b.ts": 'import "./c.ts";\nexport type B = string;\n',
    "src/store/c.ts": "export {};\n",
  });
  expect(checkCycles(root)).toEqual([]);
});
