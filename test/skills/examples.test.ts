import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { skills } from "perdure";
import { SkillRegistry, type SkillScriptResult, type SkillWarning } from "perdure/skills";
import { createBashSandbox, createQuickJsSandbox, MemoryFiles } from "perdure/tools";

const folder = fileURLToPath(new URL("../../examples/skills", import.meta.url));
const warnings: SkillWarning[] = [];
const registry = new SkillRegistry([skills.fromDirectory(folder)], { onWarning: (one) => warnings.push(one) });
const bash = createBashSandbox({ workers: 1 });
const sandbox = createQuickJsSandbox();
const workspaceInstance = new MemoryFiles({
  files: {
    "/sales.csv": "city,amount,note\nOslo,10,\nRome,20.5,late\nOslo,3,\n",
    "/broken.csv": "a,b\n1,2\n3\n",
    "/draft.md": "We utilize it prior to lunch.",
  },
});
const runner = skills.runner({ sandbox, bash, workspaceInstance });

beforeAll(() => registry.refresh());
afterAll(async () => {
  await bash.dispose();
  await sandbox.dispose();
});

async function run(name: string, script: string, input: unknown): Promise<SkillScriptResult> {
  const skill = registry.get(name);
  if (skill === undefined) throw new Error(`no skill ${name}`);
  return runner.run({ skill, script, input });
}

test("the example skills keep to the format", () => {
  expect(warnings).toEqual([]);
  expect(registry.list().map(({ name }) => name)).toEqual(["csv-report", "plain-writing", "release-notes"]);
  expect(registry.get("release-notes")).toMatchObject({
    license: "MIT",
    metadata: { author: "perdure", version: "1.0" },
    allowedTools: ["read", "run_skill_script"],
  });
  expect(registry.get("csv-report")?.description).toMatch(/^Checks a CSV file .* values\. Use it/);
});

test("TypeScript: release notes, with a module beside the script and an artifact", async () => {
  const changes = [
    { kind: "fixed", text: "Uploads of more than 2 GB work.", issue: 12 },
    { kind: "added", text: "We added `--quiet`!" },
  ];
  const done = await run("release-notes", "scripts/format.ts", { version: "1.4.0", date: "2026-03-02", changes });
  const markdown =
    "## 1.4.0 (2026-03-02)\n\n### Added\n\n- We added `--quiet`!\n\n### Fixed\n\n- Uploads of more than 2 GB work. (#12)\n";
  expect(done).toEqual({
    ok: true,
    result: {
      markdown,
      counts: { added: 1, fixed: 1 },
      problems: [
        "No full stop at its end: We added `--quiet`!",
        'No exclamation marks and no "we": We added `--quiet`!',
      ],
    },
    artifacts: [{ name: "release-notes.md", mediaType: "text/markdown", encoding: "text", content: markdown }],
  });
  expect(await run("release-notes", "scripts/format.ts", {})).toMatchObject({
    ok: false,
    error: expect.stringContaining('Give { "version"'),
  });
});

test("JavaScript: a text is measured, from the input and from the workspace", async () => {
  const done = await run("plain-writing", "scripts/measure.js", { path: "/draft.md" });
  expect(done).toMatchObject({
    ok: true,
    result: {
      words: 6,
      sentences: 1,
      heavy: [
        { heavy: "utilize", lighter: "use" },
        { heavy: "prior to", lighter: "before" },
      ],
    },
  });
  expect(await run("plain-writing", "scripts/measure.js", { text: "One. Two words." })).toMatchObject({
    result: { words: 3, sentences: 2, wordsInASentence: 1.5, heavy: [] },
  });
});

test("Bash: a CSV file is checked", async () => {
  expect(await run("csv-report", "scripts/check.sh", { path: "/workspace/sales.csv" })).toMatchObject({
    ok: true,
    exitCode: 0,
    stdout: "4 lines, 3 columns\n",
    artifacts: [{ name: "check.txt", content: "4 lines, 3 columns\n" }],
  });
  expect(await run("csv-report", "scripts/check.sh", { path: "/workspace/broken.csv" })).toMatchObject({
    ok: false,
    error: "The script ended with exit code 1.",
    stdout: "line 3: 1 fields, not 2\n3 lines, 2 columns\n",
  });
  expect(await run("csv-report", "scripts/check.sh", {})).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("Give {"),
  });
});

test("Python: a function sums a CSV file up, a program prints it", async () => {
  const done = await run("csv-report", "scripts/summarise.py", { path: "/workspace/sales.csv" });
  expect(done).toMatchObject({
    ok: true,
    result: {
      rows: 3,
      columns: [
        { column: "city", type: "text", filled: "3/3", frequent: "Oslo" },
        { column: "amount", type: "number", smallest: 3, largest: 20.5, average: 11.17 },
        { column: "note", filled: "1/3" },
      ],
    },
  });
  expect(done.artifacts).toHaveLength(1);
  expect(done.artifacts[0]?.content).toContain("3 rows, 3 columns.");
  expect(await run("csv-report", "scripts/to_json.py", { path: "/workspace/broken.csv" })).toMatchObject({
    ok: true,
    stdout: '{"a": "1", "b": "2"}\n{"a": "3", "b": null}\n',
  });
});
