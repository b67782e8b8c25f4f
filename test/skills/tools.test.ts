import type { ToolSet } from "ai";
import { afterAll, expect, test } from "vitest";
import { skills } from "perdure";
import { SkillRegistry, skillsForTurn } from "perdure/skills";
import { createQuickJsSandbox } from "perdure/tools";
import { manifestOf, skillText } from "./skill-folder.ts";

const sandbox = createQuickJsSandbox();
afterAll(() => sandbox.dispose());

const text = manifestOf({
  "release-notes/SKILL.md": skillText("release-notes", "Notes.", "# Steps\n\nRead references/style.md."),
  "release-notes/references/style.md": "Be short.",
  "release-notes/references/long.md": "0123456789".repeat(5_000),
  "release-notes/scripts/echo.js": "export default (input) => ({ got: input });",
  "bare/SKILL.md": skillText("bare"),
});
const binary = { path: "assets/dot.png", encoding: "base64", content: "iVBORw==" } as const;
const large = { path: "assets/large.bin", encoding: "base64", content: btoa("\0".repeat(210_000)) } as const;
const source = skills.fromManifest({
  skills: text.skills.map((one) => (one.name === "bare" ? one : { ...one, files: [...one.files, binary, large] })),
});
const registry = new SkillRegistry([source]);
const { prompt, tools } = await skillsForTurn(registry, skills.runner({ sandbox, bash: false }));

async function call(name: string, input: unknown, from: ToolSet = tools): Promise<unknown> {
  const execute = from[name]?.execute as (input: unknown, options: unknown) => unknown;
  return execute(input, { toolCallId: "1", messages: [] });
}

test("the prompt lists the skills, and the tools are there; no runner, no scripts", async () => {
  expect(prompt).toContain("- release-notes: Notes.\n- bare: About bare.");
  expect(Object.keys(tools)).toEqual(["activate_skill", "read_skill_resource", "run_skill_script"]);
  const without = await skillsForTurn(registry);
  expect(without.prompt).toBe(prompt);
  expect(Object.keys(without.tools)).toEqual(["activate_skill", "read_skill_resource"]);
  expect(await skillsForTurn(new SkillRegistry([]))).toEqual({ prompt: "", tools: {} });
});

test("a skill is activated: its instructions and the list of its files", async () => {
  expect(await call("activate_skill", { name: "bare" })).toEqual({
    name: "bare",
    instructions: "Do bare.",
    resources: [],
  });
  const notes = await call("activate_skill", { name: "release-notes" });
  expect(notes).toMatchObject({ instructions: "# Steps\n\nRead references/style.md." });
  expect(notes).toMatchObject({ note: expect.stringContaining("Run with run_skill_script: scripts/echo.js.") });
  expect((notes as { resources: { path: string }[] }).resources.map(({ path }) => path)).toEqual([
    "assets/dot.png",
    "assets/large.bin",
    "references/long.md",
    "references/style.md",
    "scripts/echo.js",
  ]);
});

test("a resource is read by name and path, or by a path that begins with the name", async () => {
  const style = { path: "references/style.md", mediaType: "text/markdown", text: "Be short." };
  for (const input of [
    { name: "release-notes", path: "references/style.md" },
    { path: "release-notes/references/style.md" },
    { name: "release-notes", path: "release-notes/references/style.md" },
    { name: "release-notes", path: "./references//style.md" },
  ]) {
    expect(await call("read_skill_resource", input)).toEqual(style);
  }
  expect(await call("read_skill_resource", { name: "release-notes", path: "assets/dot.png" })).toEqual({
    path: "assets/dot.png",
    mediaType: "image/png",
    base64: "iVBORw==",
  });
});

test("a long text is read piece by piece, and large binaries are not read", async () => {
  const first = await call("read_skill_resource", { path: "release-notes/references/long.md" });
  expect(first).toMatchObject({ note: "Read on with offset 40000 of 50000." });
  const second = await call("read_skill_resource", { path: "release-notes/references/long.md", offset: 40_000 });
  expect((first as { text: string }).text + (second as { text: string }).text).toBe("0123456789".repeat(5_000));
  expect(second).not.toHaveProperty("note");
  expect(await call("read_skill_resource", { path: "release-notes/assets/large.bin" })).toMatchObject({
    error: expect.stringContaining("200000 can be read"),
  });
});

test.each([
  ["activate_skill", { name: "release-note" }, 'There is no skill "release-note". Near to it: release-notes, bare.'],
  ["activate_skill", {}, "Give the name of a skill: bare, release-notes."],
  ["read_skill_resource", { path: "nope/x" }, 'There is no skill "nope".'],
  ["read_skill_resource", { path: "release-notes" }, "Which file"],
  ["read_skill_resource", { name: "release-notes", path: "references/stile.md" }, "It has: references/style.md"],
  ["read_skill_resource", { name: "bare", path: "x" }, "It has none."],
  ["read_skill_resource", { name: "bare", path: "../release-notes/SKILL.md" }, "without `..`"],
  ["read_skill_resource", { name: "bare", path: "/etc/passwd" }, "must be a path below"],
  ["read_skill_resource", { name: "bare" }, "must be a path below"],
  ["run_skill_script", {}, "Give `name` and `script`"],
  ["run_skill_script", { name: "bare", script: "x.js" }, "It has none that can be run."],
  ["run_skill_script", { name: "release-notes", script: "ecco.js" }, "It has: scripts/echo.js."],
  ["run_skill_script", { name: "release-notes", script: "references/style.md" }, "has no script"],
  ["run_skill_script", { name: "release-notes", script: "echo.js", input: "x".repeat(1_000_001) }, "is longer than"],
  ["run_skill_script", { name: "constructor", script: "echo.js" }, 'no skill "constructor"'],
])("%s answers wrong input with what to do: %j", async (name, input, message) => {
  expect(await call(name, input)).toEqual({ error: expect.stringContaining(message) });
});

test("a script is run by its name, its path, or both in one", async () => {
  const done = { ok: true, result: { got: { a: 1 } }, artifacts: [] };
  expect(await call("run_skill_script", { name: "release-notes", script: "echo.js", input: { a: 1 } })).toEqual(done);
  expect(await call("run_skill_script", { name: "release-notes", script: "scripts/echo.js", input: { a: 1 } })).toEqual(
    done,
  );
  expect(await call("run_skill_script", { path: "release-notes/scripts/echo.js", input: { a: 1 } })).toEqual(done);
  expect(await call("run_skill_script", { path: "release-notes/scripts/echo.js" })).toMatchObject({
    result: { got: null },
  });
});
