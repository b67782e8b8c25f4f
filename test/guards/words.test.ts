import { expect, test } from "vitest";
import { checkWords } from "../../scripts/check-words.ts";
import { plant } from "./plant.ts";

/** The planted words are spelled in two pieces, because the real check reads this file too. */
const machine = "/wor" + "k/main";
const registry = "https://registr" + "y.example.com/";
const later = "TOD" + "O";

test("a path of one machine fails wherever it is written", () => {
  const root = plant({
    "src/a.ts": `export const a = "${machine}";\n`,
    "docs/a.md": `See (${machine}/x).\n`,
    ".ci/run": `cd ${machine}\n`,
    "test/b.ts": `// /roo${"t"}/x\n`,
  });
  expect(checkWords(root).map((violation) => violation.split(": a path")[0])).toEqual([
    ".ci/run:1",
    "docs/a.md:1",
    "src/a.ts:1",
    "test/b.ts:1",
  ]);
});

test("a registry's host name fails, in the lock file too", () => {
  const root = plant({ "package-lock.json": `{\n "resolved": "${registry}x.tgz"\n}\n`, "README.md": `${registry}\n` });
  expect(checkWords(root)).toHaveLength(2);
});

test("a note for later fails in src only", () => {
  const root = plant({ "src/a.ts": `// ${later}: more\n`, "docs/a.md": `${later}\n` });
  expect(checkWords(root)).toEqual([`src/a.ts:1: a note for later; do it, or write an issue: "${later}"`]);
});

test("plain words and relative paths pass", () => {
  const root = plant({ "src/a.ts": 'import "./wor' + 'k/a.ts";\n// the workspace, the registry, todo lists\n' });
  expect(checkWords(root)).toEqual([]);
});
