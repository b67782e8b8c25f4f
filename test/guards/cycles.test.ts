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

test("type-only circles and a shared import pass", () => {
  const root = plant({
    "src/store/a.ts": 'import type { B } from "./b.ts";\nimport "./c.ts";\n',
    "src/store/b.ts": 'import "./a.ts";\nimport "./c.ts";\nexport type B = string;\n',
    "src/store/c.ts": 'export type A = import("./a.ts").A;\n',
  });
  expect(checkCycles(root)).toEqual([]);
});
