import { expect, test } from "vitest";
import { checkWalk } from "../../scripts/check-walk.ts";
import { plant } from "./plant.ts";

const WALK = "The walk of a message";
const told = (found: readonly string[]) => found.map((what) => `${WALK}: ${what}`);

const page = (lines: readonly string[]) =>
  `# Page\n\n## ${WALK}\n\nWords.\n\n\`\`\`text\n${lines.join("\n")}\n\`\`\`\n\n## Next\n`;

const files = {
  "src/a.ts": "export function first() {\n  new Second().go();\n}\n",
  "src/b.ts": "export class Second {\n  go() {\n    this.#on();\n  }\n  #on() {\n    hooks.answer();\n  }\n}\n",
  "src/c.ts": "export class Third {\n  async said(): Promise<void> {}\n}\n",
};
const walk = ["1 a.ts#first", "2 b.ts#go", "3 b.ts#on", "4 c.ts#said by answer   (a hook)"];

test("a walk that is true passes, private methods and names of interfaces too", () => {
  expect(checkWalk(plant({ ...files, "docs/architecture.md": page(walk) }), [WALK])).toEqual([]);
});

test.each<[string, readonly string[], readonly string[]]>([
  ["a file that is gone", ["1 a.ts#first", "2 gone.ts#go"], ["hop 2: there is no src/gone.ts"]],
  [
    "a function that is gone",
    ["1 a.ts#first", "2 b.ts#went"],
    ["hop 2: src/b.ts has no function went", "hop 2: nothing before it calls went"],
  ],
  ["an order that does not hold", ["1 b.ts#go", "2 a.ts#first"], ["hop 2: nothing before it calls first"]],
  [
    "a hop that nobody calls by that name",
    [...walk.slice(0, 3), "4 c.ts#said"],
    ["hop 4: nothing before it calls said"],
  ],
  ["a function that only stands in its own file", ["1 b.ts#on", "2 b.ts#go"], ["hop 2: nothing before it calls go"]],
  ["a number that is wrong", ["1 a.ts#first", "3 b.ts#go"], ["docs/architecture.md: hop 2 is numbered 3"]],
  ["a line that is no hop", ["1 a.ts#first", "and so on"], ["docs/architecture.md: not a hop: and so on"]],
])("%s is found", (_name, lines, found) => {
  expect(checkWalk(plant({ ...files, "docs/architecture.md": page(lines) }), [WALK])).toEqual(told(found));
});

test("a walk that is too long is found, in hops and in files", () => {
  const many = Array.from({ length: 56 }, (_, i) => i);
  const all = Object.fromEntries(many.map((i) => [`src/f${i}.ts`, `export function f${i}() {\n  f${i + 1}();\n}\n`]));
  const lines = many.map((i) => `${i + 1} f${i}.ts#f${i}`);
  expect(checkWalk(plant({ ...all, "docs/architecture.md": page(lines) }), [WALK])).toEqual(
    told(["it has 56 hops (at most 55)", "it has 56 files (at most 35)"]),
  );
});

test("each walk that the page lacks is found", () => {
  expect(checkWalk(plant({ "docs/architecture.md": "# Page\n" }))).toHaveLength(4);
});
