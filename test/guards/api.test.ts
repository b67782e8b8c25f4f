import { expect, test } from "vitest";
import { checkApi, listApi } from "../../scripts/check-api.ts";
import { entry, manifest, plant, repository } from "./plant.ts";

const files = {
  "package.json": manifest({ ".": entry("index"), "./node": entry("node"), "./LICENSE": "./LICENSE" }),
  "src/index.ts": 'export { b, type C } from "./b.ts";\nexport const a = 1;\n',
  "src/node.ts": "export {};\n",
};

test("the list has every public name by its entry", () => {
  const listed = listApi(plant(files));
  expect(listed).toBe("perdure: 3 names\n  C\n  a\n  b\n\nperdure/node: 0 names\n");
  expect(checkApi(plant({ ...files, "api.txt": listed }))).toEqual([]);
});

test("a name that came or went, or no list at all, fails until the list is written anew", () => {
  const root = plant({ ...files, "api.txt": "perdure: 3 names\n  C\n  a\n  old\n\nperdure/node: 0 names\n" });
  expect(checkApi(root)).toEqual([
    "api.txt: the public names have changed; if that is meant, run npm run api",
    "+ b",
    "- old",
  ]);
  expect(checkApi(plant(files))).toContain("+ a");
});

test("the front has what apps are written with, and no more than a reader takes in", () => {
  const counts = new Map(
    [...listApi(repository).matchAll(/^(\S+): (\d+) names$/gm)].map(([, name, count]) => [name, Number(count)]),
  );
  expect(counts.get("perdure")).toBeLessThanOrEqual(140);
  expect(counts.get("perdure/tools")).toBeLessThanOrEqual(90);
});
