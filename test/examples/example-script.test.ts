import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tempDir } from "../host/open-host.ts";
import { runScript } from "./run-example.ts";

const folder = join(import.meta.dirname, "../../examples");
const names = readdirSync(folder).filter((name) => existsSync(join(folder, name, "main.ts")));

test.each([
  ["no name", [], "Which example?"],
  ["a wrong name", ["nothing"], "There is no example named nothing."],
  ["a path", ["../scripts"], "There is no example named ../scripts."],
])("%s: the names are listed", async (_, args, says) => {
  const run = runScript(tempDir(), args);
  expect(await run.exited).toBe(2);
  expect(run.output()).toContain(says);
  for (const name of names) expect(run.output()).toContain(`npm run example ${name}\n`);
});

test.each(names.filter((name) => name !== "start"))("the README of %s says how to run it", (name) => {
  expect(readFileSync(join(folder, name, "README.md"), "utf8")).toContain(`npm run example ${name}\n`);
});
