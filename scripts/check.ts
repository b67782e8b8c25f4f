import { join } from "node:path";
import { checkApi } from "./check-api.ts";
import { checkCycles } from "./check-cycles.ts";
import { checkDocs } from "./check-docs.ts";
import { checkExports } from "./check-exports.ts";
import { checkFolders } from "./check-folders.ts";
import { checkFormat } from "./check-format.ts";
import { checkHouse } from "./check-house.ts";
import { checkLint } from "./check-lint.ts";
import { checkPlatform } from "./check-platform.ts";
import { checkSizes } from "./check-sizes.ts";
import { checkSql } from "./check-sql.ts";
import { checkTypes } from "./check-types.ts";
import { checkWalk } from "./check-walk.ts";
import { checkWords } from "./check-words.ts";
import { runGuards } from "./run-guards.ts";
import type { Guard } from "./run-guards.ts";

const guards: Readonly<Record<string, Guard>> = {
  format: checkFormat,
  lint: checkLint,
  types: checkTypes,
  folders: checkFolders,
  cycles: checkCycles,
  house: checkHouse,
  walk: checkWalk,
  sizes: checkSizes,
  exports: checkExports,
  api: checkApi,
  platform: checkPlatform,
  sql: checkSql,
  words: checkWords,
  docs: checkDocs,
};

const root = join(import.meta.dirname, "..");
// `npm run check -- lint types` runs only those.
const asked = process.argv.slice(2);
const unknown = asked.filter((name) => guards[name] === undefined);
if (unknown.length > 0) {
  console.error(`No guard named ${unknown.join(", ")}. There are: ${Object.keys(guards).join(", ")}.`);
  process.exit(2);
}

const chosen = Object.entries(guards).filter(([name]) => asked.length === 0 || asked.includes(name));
const failed = await runGuards(root, chosen, (line) => console.log(line));
console.log(failed === 0 ? "check: all guards passed" : `check: ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
