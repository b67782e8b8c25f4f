import { expect, test } from "vitest";
import { checkTypes } from "../../scripts/check-types.ts";
import { plant, realTsconfig } from "./plant.ts";

test("a type error fails, and names the file", async () => {
  const root = plant({ "tsconfig.json": realTsconfig(), "src/a.ts": 'export const a: number = "one";\n' });
  expect((await checkTypes(root)).join("\n")).toContain("src/a.ts(1,14): error TS2322");
});

test("syntax that leaves code behind fails", async () => {
  const root = plant({ "tsconfig.json": realTsconfig(), "src/a.ts": "export enum A {\n  b,\n}\n" });
  expect((await checkTypes(root)).join("\n")).toContain("erasableSyntaxOnly");
});

test("a clean tree passes", async () => {
  const root = plant({ "tsconfig.json": realTsconfig(), "src/a.ts": "export const a: number = 1;\n" });
  expect(await checkTypes(root)).toEqual([]);
});
