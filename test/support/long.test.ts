import { globSync } from "node:fs";
import { expect, test } from "vitest";
import { LONG, scaledFiles } from "./long.ts";

test("every pattern of the long tests finds a file", () => {
  expect(LONG.filter((pattern) => globSync(pattern).length === 0)).toEqual([]);
});

test("what npm test runs with some of its kill points or seeds runs again with all of them", () => {
  const again = scaledFiles();
  for (const file of ["test/crash/queue.test.ts", "test/crash/schedule.test.ts", "test/fuzz/fuzz.test.ts"])
    expect(again).toContain(file);
  expect(again).not.toContain("src/wire/kebab.test.ts");
  const long = new Set(globSync([...LONG]));
  expect(again.filter((file) => long.has(file))).toEqual([]);
});
