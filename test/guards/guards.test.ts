import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runGuards } from "../../scripts/run-guards.ts";
import { repository } from "./plant.ts";

const names = readdirSync(join(repository, "scripts"))
  .map((file) => /^check-(.+)\.ts$/.exec(file)?.[1])
  .filter((name) => name !== undefined);

test.each(names)("the guard %s is run by npm run check and has a test that sees it fail", (name) => {
  expect(readFileSync(join(repository, "scripts", "check.ts"), "utf8")).toContain(`"./check-${name}.ts"`);
  expect(existsSync(join(repository, "test", "guards", `${name}.test.ts`))).toBe(true);
});

test("every guard that fails or throws is counted and shown, and the others still run", async () => {
  const lines: string[] = [];
  const guards = [
    ["clean", () => []],
    ["dirty", () => ["src/a.ts: wrong"]],
    ["broken", () => Promise.reject(new Error("no such file"))],
    ["last", () => []],
  ] as const;
  expect(await runGuards(".", guards, (line) => lines.push(line))).toBe(2);
  expect(lines).toEqual([
    "ok   clean",
    "FAIL dirty",
    "       src/a.ts: wrong",
    "FAIL broken",
    "       the guard itself failed: no such file",
    "ok   last",
  ]);
});
