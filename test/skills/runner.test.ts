import { jsonSchema, tool } from "ai";
import { afterAll, expect, test } from "vitest";
import { skills } from "perdure";
import { SkillRegistry, type SkillRunnerOptions, type SkillScriptResult } from "perdure/skills";
import { createBashSandbox, createQuickJsSandbox, MemoryFiles } from "perdure/tools";
import { manifestOf, skillText } from "./skill-folder.ts";

const sandbox = createQuickJsSandbox();
const bash = createBashSandbox({ workers: 1 });
afterAll(async () => {
  await sandbox.dispose();
  await bash.dispose();
});

/** Runs one script of a skill that has it, and a text file. */
async function run(
  ending: string,
  code: string,
  options: SkillRunnerOptions = {},
  input: unknown = {},
): Promise<SkillScriptResult> {
  const script = `scripts/main${ending}`;
  const files = { "s/SKILL.md": skillText("s"), "s/references/r.md": "R", [`s/${script}`]: code };
  const registry = new SkillRegistry([skills.fromManifest(manifestOf(files))]);
  await registry.refresh();
  const [skill] = registry.list();
  if (skill === undefined) throw new Error("no skill");
  return skills.runner({ sandbox, bash, ...options }).run({ skill, script, input });
}

const files = (): MemoryFiles => new MemoryFiles({ files: { "/notes.md": "notes" } });

test("a function gets the skill, its files and its input, and what it logs is kept", async () => {
  const code = `export default async function run(input: { n: number }, ctx: any) {
    console.log("working"); console.warn("careful");
    return { n: input.n + 1, skill: ctx.skill.name, r: ctx.files["references/r.md"], workspace: typeof ctx.workspace, tools: ctx.tools.names };
  }`;
  expect(await run(".ts", code, {}, { n: 1 })).toEqual({
    ok: true,
    result: { n: 2, skill: "s", r: "R", workspace: "undefined", tools: [] },
    logs: ["working", "warn: careful"],
    artifacts: [],
  });
});

test("the workspace can be read by default, written only where that was said, and hidden", async () => {
  const read = `export default async (i, ctx) => [await ctx.workspace.readFile("/notes.md"), typeof ctx.workspace.writeFile]`;
  const write = `export default async (i, ctx) => { await ctx.workspace.writeFile("/new.md", "new"); return "written"; }`;
  const workspaceInstance = files();
  expect(await run(".js", read, { workspaceInstance })).toMatchObject({ ok: true, result: ["notes", "undefined"] });
  expect(await run(".js", write, { workspaceInstance })).toMatchObject({ ok: false });
  expect(await run(".js", read, { workspaceInstance, workspace: "none" })).toMatchObject({ ok: false });
  expect(workspaceInstance.files()).toHaveLength(1);
  expect(await run(".js", write, { workspaceInstance, workspace: "read-write" })).toMatchObject({ result: "written" });
  expect(workspaceInstance.files().map(({ path }) => path)).toEqual(["/new.md", "/notes.md"]);
});

test("the same holds for Bash", async () => {
  const workspaceInstance = files();
  expect(await run(".sh", "cat /workspace/notes.md", { workspaceInstance })).toMatchObject({
    ok: true,
    stdout: "notes",
  });
  expect(await run(".sh", "echo x > /workspace/new.md", { workspaceInstance })).toMatchObject({ ok: false });
  expect(await run(".sh", "ls /workspace", { workspaceInstance, workspace: "none" })).toMatchObject({ ok: false });
  expect(await run(".sh", "echo x > /skill/new.md")).toMatchObject({ ok: false });
  expect(await run(".sh", "rm /skill/references/r.md; cat /skill/references/r.md")).toMatchObject({ stdout: "R" });
  expect(workspaceInstance.files()).toHaveLength(1);
  expect(await run(".sh", "echo x > /workspace/new.md", { workspaceInstance, workspace: "read-write" })).toMatchObject({
    ok: true,
  });
  expect(workspaceInstance.files()).toHaveLength(2);
});

const weather = tool({
  inputSchema: jsonSchema<{ city: string }>(
    { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    {
      validate: (value) =>
        typeof (value as { city?: unknown }).city === "string"
          ? { success: true, value: value as { city: string } }
          : { success: false, error: new Error("city must be a text") },
    },
  ),
  execute: ({ city }) => ({ city, degrees: 20 }),
});
const guarded = { ...weather, needsApproval: true };

test("a script calls the tools that the runner was given, and no others", async () => {
  const tools = { weather, guarded, double: (args: unknown) => Number(args) * 2 };
  const call = (name: string, args: string): string =>
    `export default (i, ctx) => ctx.tools.call(${JSON.stringify(name)}, ${args})`;
  expect(await run(".js", call("weather", '{ city: "Oslo" }'), { tools })).toMatchObject({ result: { degrees: 20 } });
  expect(await run(".js", call("double", "21"), { tools })).toMatchObject({ result: 42 });
  const errors: [string, string, RegExp][] = [
    ["weather", "{}", /city must be a text/],
    ["guarded", '{ city: "Oslo" }', /needs approval/],
    ["other", "{}", /no tool "other"\. There are: weather, guarded, double/],
    ["constructor", "{}", /no tool "constructor"/],
  ];
  for (const [name, args, message] of errors) {
    expect((await run(".js", call(name, args), { tools })).error).toMatch(message);
  }
  expect((await run(".js", call("weather", "{}"))).error).toMatch(/gives scripts no tools/);
  expect(await run(".sh", `tool tools.weather '{"city":"Rome"}'`, { tools })).toMatchObject({
    stdout: '{"city":"Rome","degrees":20}\n',
  });
});

test("artifacts are bounded in number and size, and stay in the output", async () => {
  const write = (name: string, content: string): string =>
    `export default async (i, ctx) => { await ctx.output.writeFile(${JSON.stringify(name)}, ${content}); return 1; }`;
  expect(await run(".js", write("a/b.bin", "new Uint8Array([0, 255])"))).toMatchObject({
    artifacts: [{ name: "a/b.bin", mediaType: "application/octet-stream", encoding: "base64", content: "AP8=" }],
  });
  expect((await run(".js", write("../x", '"x"'))).error).toMatch(/without `\.\.`/);
  expect((await run(".js", write("big", '"x".repeat(64001)'))).error).toMatch(/the limit for an output is 64000/);
  const many = `export default async (i, ctx) => { for (let n = 0; n < 21; n++) await ctx.output.writeFile("f" + n, "x"); }`;
  const result = await run(".js", many);
  expect(result.error).toMatch(/may leave at most 20 files/);
  expect(result.artifacts).toHaveLength(20);
  const shell = await run(
    ".sh",
    'for i in $(seq 1 25); do echo $i > /output/f$i; done; printf "%70000s" x > /output/big',
  );
  expect(shell.artifacts).toHaveLength(20);
  expect(shell.logs?.join(" ")).toMatch(/big has 70000 bytes.*may leave at most 20 files/);
  const link = await run(
    ".sh",
    "ln -s /skill/SKILL.md /output/link; ln -s /input.json /output/l2; echo ok > /output/x",
  );
  expect(link.artifacts.map(({ name }) => name)).toEqual(["x"]);
});

test("what goes wrong is told without a place of the host", async () => {
  const failures: [string, string, RegExp][] = [
    [".js", "export default () => { throw new TypeError('no city'); }", /TypeError: no city/],
    [".js", "export const x = 1;", /must export default async function run/],
    [".ts", "export default async function run( {", /./],
    [".js", "export default () => { while (true) {} }", /was stopped/],
    [".js", 'import fs from "node:fs"; export default () => fs.readdirSync("/");', /./],
    [".sh", "exit 3", /exit code 3/],
    [".sh", "sleep 60", /did not end within 700 ms/],
  ];
  for (const [ending, code, message] of failures) {
    const result = await run(ending, code, { timeout: 700 });
    expect(result.ok, code).toBe(false);
    expect(result.error, code).toMatch(message);
    expect(JSON.stringify(result)).not.toContain(process.cwd());
  }
});

test("Python: what the function returns, raises and prints", async () => {
  const code = `import sys
def run(input, ctx):
    print("hello", ctx.skill.name, ctx["workspace"])
    print("aside", file=sys.stderr)
    return {"n": input["n"] * 2, "files": ctx.files}`;
  expect(await run(".py", code, {}, { n: 2 })).toMatchObject({
    ok: true,
    result: { n: 4, files: ["references/r.md", "scripts/main.py"] },
    stdout: "hello s None\n",
    stderr: "aside\n",
  });
  const fails = await run(".py", "def run(input, ctx):\n    return input['n']", {}, {});
  expect(fails).toMatchObject({ ok: false, exitCode: 1 });
  expect(fails.stderr).toContain('File "/skill/scripts/main.py", line 2, in run');
  expect(fails.stderr).toContain("KeyError: 'n'");
});

test("a script stops when its turn does", async () => {
  const registry = new SkillRegistry([
    skills.fromManifest(manifestOf({ "s/SKILL.md": skillText("s"), "s/scripts/wait.sh": "sleep 30" })),
  ]);
  await registry.refresh();
  const [skill] = registry.list();
  if (skill === undefined) throw new Error("no skill");
  const turn = new AbortController();
  const going = skills.runner({ bash }).run({ skill, script: "scripts/wait.sh", input: null, signal: turn.signal });
  turn.abort();
  expect(await going).toMatchObject({ ok: false, error: "The script was stopped: the turn ended." });
});

test("options that cannot work are refused, and endings that cannot be run", async () => {
  expect(() => skills.runner({ timeout: 0 })).toThrow(/timeout must be/);
  expect(() => skills.runner({ workspace: "all" as never })).toThrow(/workspace must be/);
  expect(skills.runner({ bash: false }).extensions).toEqual([".js", ".mjs", ".ts", ".mts"]);
  expect(await run(".sh", "echo x", { bash: false })).toMatchObject({
    ok: false,
    error: expect.stringContaining(".js"),
  });
});
