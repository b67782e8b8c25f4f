import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { PerdureError } from "../../src/base/error.ts";
import { repository } from "./plant.ts";

test("the package's own name means src in tests, not what was last built", async () => {
  const face = await import("perdure");
  expect(face.PerdureError).toBe(PerdureError);
});

test("and in a child process that is started with the condition", () => {
  const code = 'console.log(import.meta.resolve("perdure"))';
  const args = ["--conditions=perdure-source", "--input-type=module", "--eval", code];
  expect(execFileSync(process.execPath, args, { cwd: repository, encoding: "utf8" }).trim()).toMatch(
    /\/src\/index\.ts$/,
  );
});
