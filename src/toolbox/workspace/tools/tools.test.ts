import type { Tool, ToolSet } from "ai";
import { expect, test } from "vitest";
import { probeHost } from "../../../../test/chat/probe-host.ts";
import { toolOptionsOf } from "../../../tool/define.ts";
import { Workspace } from "../workspace.ts";
import { createWorkspaceTools, type WorkspaceToolsOptions } from "./create-workspace-tools.ts";
import type { WorkspaceLike } from "../types.ts";

async function setUp(options: WorkspaceToolsOptions = {}) {
  const { host } = await probeHost();
  const workspace = new Workspace({ host });
  return { host, workspace, tools: createWorkspaceTools(workspace, { bash: false, ...options }) };
}

function toolOf(tools: ToolSet, name: string): Tool {
  const tool = tools[name];
  if (tool === undefined) throw new Error(`There is no tool ${name}.`);
  return tool;
}

/** The output of a call, as it is stored. */
async function call(tools: ToolSet, name: string, input: unknown): Promise<unknown> {
  return toolOf(tools, name).execute?.(input, { toolCallId: "t", messages: [], context: {} });
}

/** What the model reads of it. */
async function show(tools: ToolSet, name: string, output: unknown, input: unknown = {}) {
  return toolOf(tools, name).toModelOutput?.({ toolCallId: "t", input, output });
}

async function said(tools: ToolSet, name: string, input: unknown): Promise<string> {
  const shown = await show(tools, name, await call(tools, name, input), input);
  if (shown?.type !== "text") throw new Error(`No text: ${JSON.stringify(shown)}`);
  return shown.value;
}

const PNG = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 1, 2, 3]);

test("the names, the order and what may run again", async () => {
  const { tools, workspace } = await setUp();
  expect(Object.keys(tools)).toEqual(["read", "write", "edit", "list", "find", "grep", "delete"]);
  expect(Object.entries(tools).map(([name, tool]) => `${name} ${toolOptionsOf(tool).replay}`)).toEqual([
    ...["read safe", "write safe", "edit never", "list safe", "find safe", "grep safe", "delete safe"],
  ]);
  expect(Object.keys(createWorkspaceTools(workspace, { bash: false, names: "long" }))).toEqual([
    ...["read_file", "write_file", "edit_file", "list_directory", "find_files", "grep", "delete"],
  ]);
  expect(Object.keys(createWorkspaceTools(workspace, { readOnly: true, bash: false }))).toEqual([
    "read",
    "list",
    "find",
    "grep",
  ]);
  expect(Object.keys(createWorkspaceTools(workspace))).toContain("bash");
});

test("what outputs are about: a file or a page of it, a directory, a search; not what a hook put in their places", async () => {
  const { tools, workspace } = await setUp();
  await workspace.writeFile("/a", "one\ntwo\nthree");
  const about = async (name: string, input: Record<string, unknown>, output?: unknown) =>
    toolOptionsOf(toolOf(tools, name)).supersedes?.(input, output ?? (await call(tools, name, input)));
  expect(await about("read", { path: "/x/../a" })).toBe("/a");
  expect(await about("read", { path: "/a", offset: 1, limit: 9 })).toBe("/a");
  expect(await about("read", { path: "/a", offset: 2, limit: 1 })).toEqual({ of: "/a", piece: "2 1" });
  expect(await about("list", {})).toBe("/");
  expect(await about("list", { path: "/" }, { path: "/", entries: [], next: 200 })).toEqual({ of: "/", piece: "0" });
  expect(await about("find", { pattern: "*.ts" })).toBe(await about("find", { pattern: "*.ts", path: "/" }));
  expect(await about("grep", { pattern: "o" })).toBe(await about("grep", { pattern: "o", path: "/", context: 0 }));
  expect(await about("grep", { pattern: "o" })).not.toBe(await about("grep", { pattern: "o", literal: true }));
  for (const name of ["read", "list", "find", "grep"])
    expect(await about(name, { path: "/a", pattern: "o" }, "Withheld.")).toBeUndefined();
});

test("read numbers the lines and says how to go on", async () => {
  const { tools, workspace } = await setUp();
  await workspace.writeFile("/a", "one\r\ntwo\nthree");
  expect(await call(tools, "read", { path: "/a", offset: 2, limit: 1 })).toEqual({
    ...{ kind: "text", path: "/a", content: "2\ttwo", totalLines: 3, fromLine: 2, toLine: 2 },
    ...{ hash: expect.stringMatching(/^[0-9a-f]{12}$/), note: "Read on with offset 3; there are 3 lines." },
  });
  expect(await said(tools, "read", { path: "/a" })).toMatch(/^1\tone\n2\ttwo\n3\tthree\n\n\(hash [0-9a-f]{12}\.\)$/);
  await workspace.writeFile("/long", "x\n".repeat(5_000));
  expect(await call(tools, "read", { path: "/long" })).toMatchObject({ toLine: 2_000, totalLines: 5_000 });
  await workspace.writeFile("/wide", `${"y".repeat(3_000)}\n`.repeat(100));
  const wide = (await call(tools, "read", { path: "/wide" })) as { content: string; toLine: number };
  expect(wide.content).toContain("… (1000 more characters in this line)");
  expect(wide.content.length).toBeLessThan(50_000);
  expect(wide.toLine).toBeLessThan(30);
  await workspace.writeFile("/empty", "");
  expect(await said(tools, "read", { path: "/empty" })).toContain("The file is empty.");
});

test.each([
  ["read", { path: "/none" }, "ENOENT: There is no file /none. List the directory"],
  ["read", { path: "/dir" }, "EISDIR: /dir is a directory. List it instead."],
  ["read", { path: "/dir/a", offset: 9 }, "EINVAL: The file has 2 lines, so there is no line 9."],
  ["read", { path: 5 }, '"path" must be a string, not 5.'],
  ["read", {}, '"path" is missing.'],
  ["read", "x", "Pass an object"],
  ["read", { path: "/dir/a", offset: "many" }, '"offset" must be a whole number'],
  ["write", { path: "/x" }, '"content" is missing.'],
  ["write", { path: "/dir", content: "" }, "EISDIR"],
  [
    "edit",
    { path: "/none", old_string: "a", new_string: "b" },
    "ENOENT: There is no file /none. To make it, give an empty",
  ],
  ["edit", { path: "/dir/a", old_string: "a", new_string: "a" }, "are the same"],
  ["edit", { path: "/dir/a", old_string: "", new_string: "a" }, "EEXIST: /dir/a is there already."],
  ["edit", { path: "/dir/bin", old_string: "a", new_string: "b" }, "EINVAL: /dir/bin is not UTF-8 text."],
  ["list", { path: "/none" }, "ENOENT"],
  ["list", { path: "/dir", offset: 50 }, "EINVAL: /dir has no more than 50 entries."],
  ["find", { pattern: "{a" }, "never closed"],
  ["grep", { pattern: "(?=x)" }, "lookahead"],
  ["grep", { pattern: "" }, "The pattern is empty"],
  ["grep", { pattern: "x", path: "/none" }, "ENOENT"],
  ["delete", { path: "/" }, "EPERM: The root cannot be deleted."],
  ["delete", { path: "/dir" }, "ENOTEMPTY: /dir is a directory that is not empty. Delete it with recursive."],
  ["delete", { path: "/dir", recursive: "perhaps" }, '"recursive" must be true or false.'],
])("%s(%j) tells the model what to do", async (name, input, message) => {
  const { tools, workspace } = await setUp();
  await workspace.writeFile("/dir/a", "a\nb\n");
  await workspace.writeFileBytes("/dir/bin", new Uint8Array([1, 0, 255]));
  const failed = await call(tools, name, input).then(
    () => "",
    (thrown: Error) => thrown.message,
  );
  expect(failed).toContain(message);
  expect(await workspace.readFile("/dir/a")).toBe("a\nb\n");
});

test("pictures are shown to the model by their content, while the stored output stays small", async () => {
  const { tools, workspace } = await setUp();
  await workspace.writeFileBytes("/p.png", PNG);
  const output = await call(tools, "read", { path: "/p.png" });
  expect(output).toEqual({
    ...{
      kind: "image",
      path: "/p.png",
      mediaType: "image/png",
      size: 9,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    },
  });
  // Another file stands there now, or none: the conversation says the same as before.
  await workspace.writeFile("/p.png", "no picture any more");
  expect(await show(tools, "read", output)).toEqual({
    type: "content",
    value: [
      { type: "text", text: "/p.png (image/png, 9 bytes)" },
      {
        type: "file",
        data: { type: "data", data: Buffer.from(PNG).toString("base64") },
        mediaType: "image/png",
        filename: "p.png",
      },
    ],
  });
  const gone = { kind: "image", path: "/p.png", mediaType: "image/png", size: 9, hash: "0".repeat(64) };
  expect(await show(tools, "read", gone)).toEqual({
    ...{ type: "text", value: "/p.png (image/png, 9 bytes) was shown here. Its bytes are no longer stored." },
  });
  // What was cut or cleared since is shown as it is.
  expect(await show(tools, "read", "[cut]")).toEqual({ type: "text", value: "[cut]" });
});

test("without a place to keep pictures, a changed file is gone from the conversation", async () => {
  const { workspace } = await setUp();
  const { readFile, readFileBytes, writeFile, readDir, rm, glob, mkdir, stat } = workspace;
  const like: WorkspaceLike = Object.fromEntries(
    Object.entries({ readFile, readFileBytes, writeFile, readDir, rm, glob, mkdir, stat }).map(([name, method]) => [
      name,
      (method as (...args: unknown[]) => unknown).bind(workspace),
    ]),
  ) as unknown as WorkspaceLike;
  const tools = createWorkspaceTools(like, { bash: false });
  await workspace.writeFileBytes("/p.png", PNG);
  const output = await call(tools, "read", { path: "/p.png" });
  expect(await show(tools, "read", output)).toMatchObject({ type: "content" });
  await workspace.writeFile("/p.png", "other");
  expect(await show(tools, "read", output)).toMatchObject({ type: "text" });
  // The other tools work on the eight methods, too.
  await Promise.all(
    ["1", "2"].map((text) => call(tools, "edit", { path: "/p.png", old_string: "o", new_string: `o${text}` })),
  );
  expect(await workspace.readFile("/p.png")).toMatch(/^o(12|21)ther$/);
  expect(() => createWorkspaceTools({} as WorkspaceLike)).toThrow("no method readFile, readFileBytes");
});

test("what is no text is said to be none, and large pictures are not sent", async () => {
  const { tools, workspace } = await setUp();
  await workspace.writeFileBytes("/bin", new Uint8Array([1, 2, 0, 3]));
  expect(await said(tools, "read", { path: "/bin" })).toBe(
    "/bin cannot be read. It is not UTF-8 text, so its content cannot be shown.",
  );
  const large = new Uint8Array(3_600_000);
  large.set(PNG);
  await workspace.writeFileBytes("/large.png", large);
  expect(await said(tools, "read", { path: "/large.png" })).toContain("only up to 3.5 MB can be shown");
});

test("write makes and replaces files, and with a hash only what was seen", async () => {
  const { tools, workspace } = await setUp();
  expect(await said(tools, "write", { path: "/d/a", content: "1\n2\n" })).toBe("Created /d/a: 2 lines, 4 bytes.");
  // The same call again, as after a crash.
  expect(await call(tools, "write", { path: "/d/a", content: "1\n2\n" })).toMatchObject({ bytes: 4 });
  const { hash } = (await call(tools, "read", { path: "/d/a" })) as { hash: string };
  expect(await said(tools, "write", { path: "/d/a", content: "3", expected_hash: hash })).toBe(
    "Wrote /d/a: 1 lines, 1 bytes.",
  );
  await expect(call(tools, "write", { path: "/d/a", content: "4", expected_hash: hash })).rejects.toThrow(
    "has changed since you read it",
  );
  await expect(call(tools, "write", { path: "/new", content: "4", expected_hash: hash })).rejects.toThrow(
    "has changed since",
  );
  expect(await workspace.readFile("/d/a")).toBe("3");
  await workspace.writeFileBytes("/bin", new Uint8Array([0]));
  await call(tools, "write", { path: "/bin", content: "text now" });
  expect(await workspace.readFile("/bin")).toBe("text now");
});

test("edit replaces what is there once, and calls side by side all count", async () => {
  const { tools, workspace } = await setUp();
  await workspace.writeFile("/a", "one\ntwo\nthree\n");
  const output = await call(tools, "edit", { path: "/a", old_string: "two", new_string: "2" });
  expect(output).toEqual({
    ...{ path: "/a", created: false, replacements: 1, lines: [2], loosely: false },
    diff: "--- /a\n+++ /a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
  });
  expect(await show(tools, "edit", output)).toEqual({ type: "text", value: "Changed /a at line 2." });
  await workspace.writeFile("/many", Array.from({ length: 20 }, (_, n) => `line ${n};`).join("\n"));
  const edits = Array.from({ length: 20 }, (_, n) =>
    call(tools, "edit", { path: "/many", old_string: `line ${n};`, new_string: `LINE ${n};` }),
  );
  await Promise.all(edits);
  expect(await workspace.readFile("/many")).not.toContain("line");
  expect(
    await said(tools, "edit", { path: "/many", old_string: "LINE", new_string: "l", replace_all: true }),
  ).toContain("20 places");
  expect(await said(tools, "edit", { path: "/new/file", old_string: "", new_string: "made" })).toBe(
    "Created /new/file.",
  );
  expect(await workspace.readFile("/new/file")).toBe("made");
});

test("list comes in pages, with kinds and sizes", async () => {
  const { tools, workspace, host } = await setUp();
  await workspace.mkdir("/d/sub", { recursive: true });
  await workspace.symlink("sub", "/d/way");
  await workspace.writeFile("/d/file", "12345");
  expect(await said(tools, "list", { path: "/d" })).toBe("file  5 bytes\nsub/\nway -> sub");
  expect(await said(tools, "list", { path: "/d/sub" })).toBe("/d/sub is empty.");
  host.tx(() => {
    for (let n = 0; n < 250; n++) void workspace.writeFile(`/many/${String(n).padStart(3, "0")}`, "");
  });
  expect(await said(tools, "list", { path: "/many" })).toMatch(
    /\n199 {2}0 bytes\n\(There are more. Go on with offset 200.\)$/,
  );
  expect(await call(tools, "list", { path: "/many", offset: 200 })).toMatchObject({ entries: { length: 50 } });
  expect(await said(tools, "find", { pattern: "/many/*" })).toContain("(There are 50 more. Use a narrower pattern.)");
});

test("find takes names at any depth, and paths from where it looks", async () => {
  const { tools, workspace } = await setUp();
  for (const path of ["/src/a.ts", "/src/deep/b.ts", "/c.ts"]) await workspace.writeFile(path, "");
  expect(await said(tools, "find", { pattern: "*.ts" })).toBe("/c.ts\n/src/a.ts\n/src/deep/b.ts");
  expect(await said(tools, "find", { pattern: "deep/*", path: "/src" })).toBe("/src/deep/b.ts");
  expect(await said(tools, "find", { pattern: "de*", path: "/src" })).toBe("/src/deep/");
  expect(await said(tools, "find", { pattern: "*.md" })).toBe("Nothing matches.");
});

test("find in a large tree shows the first paths, counts the others, and lets others have their turn", async () => {
  const { host } = await probeHost();
  let breaths = 0;
  const counting = new Proxy(host, {
    get(target, key) {
      if (key === "breathe") return () => (breaths++, host.breathe());
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  const workspace = new Workspace({ host: counting });
  for (let n = 0; n < 1_100; n++) await workspace.writeFile(`/d${n % 7}/f${n}.md`, "");
  const tools = createWorkspaceTools(workspace, { bash: false });
  breaths = 0;
  const found = (await call(tools, "find", { pattern: "*.md" })) as { paths: string[]; more: number };
  expect(found).toMatchObject({ more: 900, paths: found.paths.toSorted() });
  expect(found.paths).toHaveLength(200);
  expect(breaths).toBeGreaterThan(1);
});

test("grep shows lines and what is around them, and leaves out what is no text", async () => {
  const { tools, workspace } = await setUp();
  await workspace.writeFile("/a.ts", "let x = 1;\nlet y = 2;\n// foo(bar)\r\nend\n");
  await workspace.writeFile("/b.md", "Let it be");
  await workspace.writeFileBytes("/bin", new Uint8Array([108, 101, 116, 0]));
  await workspace.writeFile("/huge", "let ".repeat(300_000));
  const found = await said(tools, "grep", { pattern: "^let\\s+\\w", ignore_case: true });
  expect(found).toBe("/a.ts:1: let x = 1;\n/a.ts:2: let y = 2;\n/b.md:1: Let it be\n(1 file above 1 MB was left out.)");
  expect(await said(tools, "grep", { pattern: "foo(bar)", literal: true })).toContain("/a.ts:3: // foo(bar)\n");
  expect(await said(tools, "grep", { pattern: "y = 2", include: "*.ts", context: 1 })).toBe(
    "/a.ts-1- let x = 1;\n/a.ts:2: let y = 2;\n/a.ts-3- // foo(bar)",
  );
  expect(await said(tools, "grep", { pattern: "let", include: "*.ts", context: 1 })).toBe(
    "/a.ts:1: let x = 1;\n/a.ts:2: let y = 2;\n/a.ts-3- // foo(bar)",
  );
  expect(await said(tools, "grep", { pattern: "end$", path: "/a.ts" })).toBe("/a.ts:4: end");
  expect(await said(tools, "grep", { pattern: "nowhere", include: "*.md" })).toBe("No matches in 1 files.");
  await workspace.writeFile("/m", "hit\n".repeat(300));
  const many = (await call(tools, "grep", { pattern: "hit" })) as { matches: number; note: string };
  expect(many).toMatchObject({ matches: 200, note: expect.stringContaining("There are more matches.") });
});

test("a grep with a terrible pattern lets others work, and can be stopped", async () => {
  let breaths = 0;
  const { tools, workspace } = await setUp({ breathe: async () => void breaths++ });
  for (let n = 0; n < 5; n++) await workspace.writeFile(`/f${n}`, `${"a".repeat(900)}\n`.repeat(1_000));
  expect(await call(tools, "grep", { pattern: "^(a|aa)+(a+)+!$" })).toMatchObject({ matches: 0, files: 5 });
  expect(breaths).toBeGreaterThan(10);
  const stopped = new AbortController();
  stopped.abort(new Error("stopped"));
  const options = { toolCallId: "t", messages: [], context: {}, abortSignal: stopped.signal };
  await expect(toolOf(tools, "grep").execute?.({ pattern: "a" }, options)).rejects.toThrow("stopped");
});

test("a pattern that takes long lets others have their turn more often, and ends", async () => {
  let breaths = 0;
  const { tools, workspace } = await setUp({ breathe: async () => void breaths++ });
  let seed = 1;
  const letters = Array.from({ length: 20_000 }, () =>
    (seed = (seed * 48_271) % 2_147_483_647) % 2 === 0 ? "a" : "b",
  );
  const lines = Array.from({ length: 100 }, (_, at) => letters.slice(at * 200, at * 200 + 200).join(""));
  await workspace.writeFile("/ab.txt", lines.join("\n"));
  expect(await call(tools, "grep", { pattern: "[ab]*a[ab]{100}[^ab]" })).toMatchObject({ matches: 0, files: 1 });
  expect(breaths).toBeGreaterThan(2);
});

test("delete takes files, and directories only when it is said", async () => {
  const { tools, workspace } = await setUp();
  await workspace.writeFile("/d/a", "");
  expect(await said(tools, "delete", { path: "/d", recursive: true })).toBe("Deleted /d.");
  expect(await said(tools, "delete", { path: "/d", recursive: true })).toBe("There was no /d.");
});
