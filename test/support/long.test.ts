import { globSync } from "node:fs";
import { expect, test } from "vitest";
import { LONG } from "./long.ts";

test("every pattern of the long tests finds a file", () => {
  expect(LONG.filter((pattern) => globSync(pattern).length === 0)).toEqual([]);
});
