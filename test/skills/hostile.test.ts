// Skills that somebody wrote to get at more than a skill is.
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { skills } from "../../src/toolbox/skill/skills.ts";
import { parseFrontMatter } from "../../src/toolbox/skill/front-matter.ts";
import { resourcePath } from "../../src/toolbox/skill/resource-path.ts";
import { tempDir } from "../host/open-host.ts";

test.each(["../x", "a/../../x", "/etc/passwd", "a\\..\\x", "C:\\x", "a\0b", "a/..", ".."])(
  "the path %j of a resource leads nowhere",
  (path) => {
    expect(resourcePath(path)).toBeUndefined();
  },
);

const matter = (line: string) => `---\nname: a\ndescription: ${line}\n---\nhi`;

test.each([
  ["an alias of an alias", matter("&a [x, x]\nb: [*a, *a]")],
  ["a prototype", matter("b\n__proto__: { polluted: yes }")],
  ["a type of a language", matter("!!js/function 'function () {}'")],
  ["thousands of levels", matter("[".repeat(3_000))],
  ["a line of megabytes", matter("z".repeat(2_000_000))],
  ["no end", `---\n${"a: b\n".repeat(50_000)}`],
])("front matter with %s is refused", (_what, text) => {
  expect(() => parseFrontMatter(text)).toThrow("");
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

test("links do not bring files from outside into a skill", async () => {
  const dir = tempDir();
  const secret = join(tempDir(), "secret");
  mkdirSync(secret);
  writeFileSync(join(secret, "SKILL.md"), matter("of somebody else"));
  for (const name of ["a", "c", "good"]) mkdirSync(join(dir, name));
  writeFileSync(join(dir, "good", "SKILL.md"), matter("mine").replace("name: a", "name: good"));
  writeFileSync(join(dir, "a", "SKILL.md"), matter("mine"));
  symlinkSync(secret, join(dir, "a", "more"));
  symlinkSync(secret, join(dir, "b"));
  symlinkSync(join(secret, "SKILL.md"), join(dir, "c", "SKILL.md"));
  const loaded = await skills.fromDirectory(dir).load();
  expect(loaded.skills.map(({ name }) => name)).toEqual(["good"]);
  expect(JSON.stringify(loaded)).not.toContain("somebody else");
  expect(loaded.warnings).toHaveLength(3);
});
