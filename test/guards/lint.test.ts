import { expect, test } from "vitest";
import { checkLint } from "../../scripts/check-lint.ts";
import { plant, realConfig, realTsconfig } from "./plant.ts";

const config = { ".oxlintrc.json": realConfig(".oxlintrc.json"), "tsconfig.json": realTsconfig() };

async function lint(code: string, path = "src/a.ts"): Promise<string> {
  return (await checkLint(plant({ ...config, [path]: code }))).join("\n");
}

test("a promise that nobody waits for fails", async () => {
  const found = await lint("async function work(): Promise<void> {}\nexport function start(): void {\n  work();\n}\n");
  expect(found).toContain("src/a.ts:3");
  expect(found).toContain("no-floating-promises");
});

test("any fails", async () => {
  expect(await lint("export function f(a: any): void {\n  void a;\n}\n")).toContain("no-explicit-any");
});

test("a type imported as a value fails", async () => {
  const files = {
    "src/b.ts": "export type B = string;\n",
    "src/a.ts": 'import { B } from "./b.ts";\nexport type A = B;\n',
  };
  expect((await checkLint(plant({ ...config, ...files }))).join("\n")).toContain("consistent-type-imports");
});

test("a default export fails", async () => {
  expect(await lint("export default 1;\n")).toContain("no-default-export");
});

test("a test that is switched off, or the only one switched on, fails", async () => {
  const off = 'import { expect, test } from "vitest";\ntest.skip("x", () => expect(1).toBe(1));\n';
  const only = 'import { expect, test } from "vitest";\ntest.only("x", () => expect(1).toBe(1));\n';
  expect(await lint(off, "src/a.test.ts")).toContain("no-disabled-tests");
  expect(await lint(only, "src/a.test.ts")).toContain("no-focused-tests");
});

test("a clean tree passes", async () => {
  expect(
    await lint(
      "async function work(): Promise<void> {}\nexport async function f(): Promise<void> {\n  await work();\n}\n",
    ),
  ).toBe("");
});
