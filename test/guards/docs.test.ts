import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkDocs } from "../../scripts/check-docs.ts";
import { entry, manifest, plant, realTsconfig } from "./plant.ts";

const tree = {
  "package.json": manifest({ ".": entry("index") }),
  "tsconfig.json": realTsconfig(),
  "src/index.ts": "export const count: number = 1;\n",
};
const block = (code: string, info = "ts") => `# Title\n\n\`\`\`${info}\n${code}\n\`\`\`\n`;

test("a block that does not compile fails, at its own line of the page", async () => {
  const root = plant({
    ...tree,
    "README.md": block('import { count } from "perdure";\nexport const s: string = count;'),
  });
  const violations = await checkDocs(root);
  expect(violations).toHaveLength(1);
  expect(violations[0]).toMatch(/^README\.md:5: error TS2322/);
});

test("a name that is not public, and a door that is not there, fail", async () => {
  const root = plant({
    ...tree,
    "docs/a.md": block('import { gone } from "perdure";'),
    "docs/b.md": block('import { count } from "perdure/inner";', "typescript"),
  });
  const found = (await checkDocs(root)).join("\n");
  expect(found).toContain("docs/a.md:4: error TS2305");
  expect(found).toContain("docs/b.md:4: error TS2307");
});

test("a file that a page names and that is not there fails, at its line", async () => {
  const root = plant({ ...tree, "docs/a.md": "# Title\n\nSee `src/index.ts` and `src/gone.ts`.\n" });
  expect(await checkDocs(root)).toEqual(["docs/a.md:3: src/gone.ts is not there"]);
});

test("blocks that compile, opt out, or are not TypeScript pass; blocks do not see each other", async () => {
  const root = plant({
    ...tree,
    "README.md": [
      block('import { count } from "perdure";\nconst a: number = count;\nawait Promise.resolve(a);'),
      block("const a = 1;"),
      block("nonsense here", "ts no-check"),
      block("npm test", "sh"),
    ].join("\n"),
  });
  expect(await checkDocs(root)).toEqual([]);
  expect(readdirSync(join(root, "node_modules", ".cache"))).toEqual([]);
});
