import { expect, test } from "vitest";
import { probeHost } from "../../../test/chat/probe-host.ts";
import { filesOf } from "../../media/files.ts";
import type { WorkspaceChange } from "./types.ts";
import { Workspace } from "./workspace.ts";
import type { WorkspaceOptions } from "./workspace-options.ts";

async function newWorkspace(options: Partial<WorkspaceOptions> = {}) {
  const probe = await probeHost();
  return { ...probe, workspace: new Workspace({ host: probe.host, ...options }) };
}

const paths = (entries: readonly { readonly path: string }[]) => entries.map(({ path }) => path);
const count = (host: { sql<T>(query: string): T[] }, table: string) =>
  host.sql<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)[0]?.n;

test("files are written, read, appended to, listed and deleted", async () => {
  const { workspace, clock } = await newWorkspace();
  await workspace.writeFile("/notes/a.md", "one\n");
  await workspace.appendFile("notes//./a.md", "two\n");
  expect(await workspace.readFile("/notes/x/../a.md")).toBe("one\ntwo\n");
  expect(await workspace.readFile("/none")).toBeNull();
  expect(await workspace.readFile("/none/deep")).toBeNull();
  await workspace.writeFileBytes("/notes/b.bin", new Uint8Array([0, 255]));
  await expect(workspace.readFile("/notes/b.bin")).rejects.toThrow(/^EINVAL: .*not UTF-8/);
  expect([...(await workspace.readFileBytes("/notes/b.bin"))]).toEqual([0, 255]);
  expect(await workspace.stat("/notes/a.md")).toEqual({
    ...{ path: "/notes/a.md", name: "a.md", type: "file", size: 8, mtimeMs: clock.now(), mode: 0o644 },
  });
  expect(await workspace.stat("/")).toMatchObject({ type: "directory" });
  await workspace.mkdir("/notes/c");
  expect(paths(await workspace.readDir("/notes"))).toEqual(["/notes/a.md", "/notes/b.bin", "/notes/c"]);
  expect(paths(await workspace.readDir("/notes", { limit: 1, offset: 1 }))).toEqual(["/notes/b.bin"]);
  expect(await workspace.info()).toMatchObject({ files: 2, directories: 2, symlinks: 0, bytes: 10, version: 1 });
  await workspace.rm("/notes/c");
  await workspace.rm("/notes", { recursive: true });
  expect(await workspace.exists("/notes/a.md")).toBe(false);
  expect(await workspace.readDir("/")).toEqual([]);
});

test.each([
  ["readFile", ["/../up"], 'EINVAL: The path "/../up" leads above'],
  ["readFile", ["a\0b"], "EINVAL: A path cannot hold"],
  ["readFile", [""], "EINVAL: The path is empty"],
  ["readFile", ["/\ud800"], "EINVAL: The path"],
  ["readFile", [`/${"x".repeat(5_000)}`], "ENAMETOOLONG: "],
  ["readFile", [`/${"x".repeat(300)}`], "ENAMETOOLONG: "],
  ["readFile", ["/dir"], "EISDIR: /dir is a directory."],
  ["readFile", [7 as unknown as string], "EINVAL: A path must be a string"],
  ["readFileBytes", ["/none"], "ENOENT: There is no file /none."],
  ["writeFile", ["/dir", ""], "EISDIR: "],
  ["writeFile", ["/", ""], "EISDIR: "],
  ["writeFile", ["/file/below", ""], "ENOTDIR: /file is a file"],
  ["writeFile", ["/x", 5 as unknown as string], "EINVAL: The content must be a string"],
  ["mkdir", ["/dir"], "EEXIST: "],
  ["mkdir", ["/file"], "EEXIST: "],
  ["mkdir", ["/no/deep"], "ENOENT: There is no directory /no."],
  ["rm", ["/none"], "ENOENT: "],
  ["rm", ["/dir"], "ENOTEMPTY: /dir"],
  ["rm", ["/"], "EPERM: The root"],
  ["rename", ["/none", "/x"], "ENOENT: "],
  ["rename", ["/dir", "/dir/in/self"], "EINVAL: /dir cannot be moved into itself."],
  ["rename", ["/file", "/dir"], "EISDIR: "],
  ["rename", ["/dir", "/file"], "ENOTDIR: "],
  ["rename", ["/empty", "/dir"], "ENOTEMPTY: "],
  ["cp", ["/dir", "/copy"], "EISDIR: /dir is a directory. Copy it with recursive."],
  ["readDir", ["/file"], "ENOTDIR: /file is a file"],
  ["readDir", ["/none"], "ENOENT: "],
  ["readlink", ["/file"], "EINVAL: /file is no symlink."],
  ["symlink", ["../../out", "/dir/link"], 'EINVAL: The path "../../out" leads above'],
  ["symlink", ["/x", "/file"], "EEXIST: "],
  ["chmod", ["/none", 0o600], "ENOENT: "],
] as const)("%s(%j) says what is wrong: %s", async (method, args, message) => {
  const { workspace } = await newWorkspace();
  await workspace.writeFile("/dir/inner", "x");
  await workspace.writeFile("/file", "x");
  await workspace.mkdir("/empty");
  const call = workspace[method] as (...args: unknown[]) => Promise<unknown>;
  await expect(call.apply(workspace, [...args])).rejects.toThrow(
    expect.objectContaining({
      name: "PerdureError",
      message: expect.stringMatching(message.replaceAll(/[.()]/g, "\\$&")),
    }),
  );
});

test("symlinks are followed up to 40 times, also in the middle of paths, and never out", async () => {
  const { workspace } = await newWorkspace();
  await workspace.writeFile("/real/deep/file", "here");
  await workspace.symlink("real", "/link");
  await workspace.symlink("../link/deep", "/other/way");
  expect(await workspace.readFile("/other/way/file")).toBe("here");
  expect(await workspace.stat("/other/way")).toMatchObject({ type: "directory" });
  expect(await workspace.lstat("/other/way")).toMatchObject({ type: "symlink", target: "../link/deep" });
  await workspace.writeFile("/other/way/new", "n");
  expect(await workspace.readFile("/real/deep/new")).toBe("n");
  await workspace.symlink("/not/yet", "/dangling");
  expect(await workspace.readFile("/dangling")).toBeNull();
  await workspace.writeFile("/dangling", "made");
  expect(await workspace.readFile("/not/yet")).toBe("made");
  await workspace.symlink("/loop-b", "/loop-a");
  await workspace.symlink("/loop-a", "/loop-b");
  await expect(workspace.readFile("/loop-a")).rejects.toThrow(/^ELOOP: /);
  await expect(workspace.readFile("/loop-a/x")).rejects.toThrow(/^ELOOP: /);
  await workspace.rm("/link");
  expect(await workspace.readFile("/real/deep/file")).toBe("here");
  expect(await workspace.readFile("/other/way/file")).toBeNull();
});

test("renaming moves all below, replaces a file, and copying shares what is large", async () => {
  const { workspace, host } = await newWorkspace();
  const long = "x".repeat(20_000);
  await workspace.writeFile("/a/b/c", long);
  await workspace.writeFile("/a2", "not below /a");
  await workspace.cp("/a", "/copy", { recursive: true });
  expect(count(host, "perdure_file_body")).toBe(2);
  await workspace.rename("/a", "/z/y");
  await workspace.rename("/a2", "/z/y/b/c");
  expect(await workspace.readFile("/z/y/b/c")).toBe("not below /a");
  expect(await workspace.readFile("/copy/b/c")).toBe(long);
  expect(paths(await workspace.glob("/**"))).toEqual([
    ...["/copy", "/copy/b", "/copy/b/c", "/z", "/z/y", "/z/y/b", "/z/y/b/c"],
  ]);
  await workspace.rm("/copy", { recursive: true });
  expect(count(host, "perdure_file_body")).toBe(0);
});

test("large files are kept outside of the database, apart from what messages refer to", async () => {
  const { workspace, host } = await newWorkspace({ inlineLimit: 10_000 });
  const bytes = new Uint8Array(30_000).fill(65);
  const ofMessage = await filesOf(host).put(bytes, "text/plain");
  await workspace.writeFileBytes("/big", bytes);
  // What the caller does with its array afterwards changes nothing.
  bytes.fill(66);
  expect(await workspace.readFile("/big")).toBe("A".repeat(30_000));
  expect(host.sql("SELECT n, refs, large FROM perdure_file_body")).toEqual([{ n: -1, refs: 1, large: 1 }]);
  await workspace.rm("/big");
  await workspace.sweep();
  expect(host.sql("SELECT key FROM perdure_cell WHERE key LIKE 'workspace-%'")).toEqual([]);
  expect(await host.blobs.get(ofMessage.name)).toHaveLength(30_000);
});

test("streams go in and out, and end where they are too long", async () => {
  const { workspace } = await newWorkspace({ maxFileBytes: 200_000 });
  const stream = (size: number) => new Blob(["x".repeat(size)]).stream();
  await workspace.writeFileStream("/s", stream(150_000));
  const read = await workspace.readFileStream("/s");
  expect(await new Response(read).text()).toBe("x".repeat(150_000));
  expect(await workspace.readFileStream("/none")).toBeNull();
  await expect(workspace.writeFileStream("/t", stream(200_001))).rejects.toThrow(/^EFBIG: /);
  await expect(workspace.writeFile("/t", "x".repeat(200_001))).rejects.toThrow(/^EFBIG: /);
  await expect(workspace.appendFile("/s", "x".repeat(100_000))).rejects.toThrow(/^EFBIG: /);
  expect(await workspace.exists("/t")).toBe(false);
});

test("a storage for large files that fails fails the write, and nothing is left", async () => {
  let isDown = true;
  const stored = new Map<string, Uint8Array>();
  const { workspace, host } = await newWorkspace({
    inlineLimit: 1_000,
    largeFiles: {
      async put(name, bytes) {
        stored.set(name, bytes);
        if (isDown) throw new Error("down");
      },
      get: async (name) => stored.get(name),
      async delete(name) {
        stored.delete(name);
      },
    },
  });
  await expect(workspace.writeFile("/big", "x".repeat(9_000))).rejects.toThrow("down");
  expect(await workspace.exists("/big")).toBe(false);
  await workspace.sweep();
  expect([stored.size, count(host, "perdure_file_body")]).toEqual([0, 0]);
  isDown = false;
  await workspace.writeFile("/big", "x".repeat(9_000));
  expect(await workspace.readFile("/big")).toHaveLength(9_000);
  expect([...stored.keys()][0]).toMatch(/^[0-9a-f]{32}\/main\/[0-9a-f]{64}$/);
  stored.clear();
  await expect(workspace.readFile("/big")).rejects.toThrow(/^EIO: /);
});

test("changes side by side all count, whatever the sizes", async () => {
  const { workspace } = await newWorkspace({ inlineLimit: 30_000 });
  await Promise.all(Array.from({ length: 10 }, (_, n) => workspace.appendFile("/log", `${n}`.repeat(4_000))));
  const log = (await workspace.readFile("/log")) ?? "";
  expect(log).toHaveLength(40_000);
  expect(new Set(log)).toEqual(new Set("0123456789"));
  await Promise.all(["a", "b"].map((letter) => workspace.updateFile("/log", (text) => letter + (text ?? ""))));
  expect(await workspace.readFile("/log")).toMatch(/^(ab|ba)/);
  await expect(
    workspace.updateFile("/log", () => {
      throw new Error("no");
    }),
  ).rejects.toThrow("no");
});

test("namespaces are trees of their own, with points of their own", async () => {
  const { workspace, host } = await newWorkspace();
  const other = new Workspace({ host, namespace: "other" });
  await workspace.writeFile("/a", "main");
  await other.writeFile("/a", "other");
  other.mark("m");
  expect([await workspace.readFile("/a"), await other.readFile("/a")]).toEqual(["main", "other"]);
  await other.deleteAll();
  expect([await workspace.readFile("/a"), await other.readFile("/a"), other.points()]).toEqual(["main", null, []]);
  for (const namespace of ["", "a/b", "a:b", "x".repeat(65)])
    expect(() => new Workspace({ host, namespace })).toThrow(expect.objectContaining({ code: "bad_config" }));
});

test("listeners hear of changes after their commit, and of none that was undone", async () => {
  const { workspace, host } = await newWorkspace();
  const heard: string[] = [];
  const stop = workspace.watch(({ type, path, kind }: WorkspaceChange) => heard.push(`${type} ${path} ${kind}`));
  await workspace.writeFile("/d/a", "1");
  await workspace.writeFile("/d/a", "2");
  await workspace.symlink("a", "/d/l");
  await workspace.rename("/d", "/e");
  await workspace.rm("/e", { recursive: true });
  expect(() =>
    host.tx(() => {
      void workspace.writeFile("/undone", "x");
      throw new Error("undo");
    }),
  ).toThrow("undo");
  expect(await workspace.exists("/undone")).toBe(false);
  expect(heard).toEqual([
    ...["create /d/a file", "update /d/a file", "create /d/l symlink"],
    ...["delete /d directory", "create /e directory", "delete /e directory"],
  ]);
  stop();
  await workspace.writeFile("/x", "");
  expect(heard).toHaveLength(6);
});

test("who makes a workspace and marks messages, but has no files, pays nothing", async () => {
  const { workspace, host, commits } = await newWorkspace();
  const before = commits();
  workspace.mark("m1");
  workspace.mark("m2");
  expect(await workspace.readFile("/a")).toBeNull();
  expect(commits() - before).toBe(0);
  expect(workspace.hasPoint("m1")).toBe(true);
  await workspace.writeFile("/a", "x");
  expect(commits() - before).toBe(1);
  await workspace.writeFile("/a", "y");
  expect(commits() - before).toBe(2);
  expect(workspace.restore("m2")).toMatchObject({ version: 0, deleted: ["/a"] });
  expect(await workspace.readDir("/")).toEqual([]);
  expect(host.sql("SELECT ns FROM perdure_file WHERE until > 9e15")).toEqual([]);
});

test("without points, changes leave no rows behind; with them, one for each state that is needed", async () => {
  const { workspace, host } = await newWorkspace();
  for (const text of ["1", "2", "3"]) await workspace.writeFile("/a", text);
  expect(count(host, "perdure_file")).toBe(1);
  workspace.mark("m3");
  for (const text of ["4", "5", "6"]) await workspace.writeFile("/a", text);
  expect(count(host, "perdure_file")).toBe(2);
  expect(workspace.forgetPoint("m3")).toBe(true);
  expect(workspace.forgetPoint("m3")).toBe(false);
  expect(count(host, "perdure_file")).toBe(1);
});

test("a restore says what it did, can be undone, and does nothing by halves", async () => {
  const { workspace, host } = await newWorkspace();
  await workspace.writeFile("/keep", "k");
  await workspace.writeFile("/change", "old");
  await workspace.writeFile("/gone", "g");
  workspace.mark("m1");
  await workspace.writeFile("/change", "new");
  await workspace.writeFile("/made/by", "later");
  await workspace.rm("/gone");
  const result = workspace.restore("m1");
  expect(result).toMatchObject({ created: ["/gone"], updated: ["/change"], deleted: ["/made", "/made/by"] });
  expect(await workspace.readFile("/change")).toBe("old");
  workspace.restore(result.undo);
  expect(await workspace.readFile("/change")).toBe("new");
  expect(await workspace.readFile("/made/by")).toBe("later");
  expect(() =>
    host.tx(() => {
      workspace.restore("m1");
      throw new Error("undo");
    }),
  ).toThrow("undo");
  expect(await workspace.readFile("/change")).toBe("new");
  expect(() => workspace.restore("m9")).toThrow(expect.objectContaining({ code: "not_found" }));
  expect(() => workspace.restore(77)).toThrow(expect.objectContaining({ code: "not_found" }));
  expect(() => workspace.mark("")).toThrow(expect.objectContaining({ code: "bad_input" }));
});

test("what changed between points, with the lines", async () => {
  const { workspace } = await newWorkspace();
  await workspace.writeFile("/a", "one\ntwo\n");
  await workspace.writeFile("/b", "b");
  workspace.mark("m1");
  await workspace.writeFile("/a", "one\n2\n");
  await workspace.rm("/b");
  await workspace.writeFileBytes("/c", new Uint8Array([0]));
  workspace.mark("m2");
  await workspace.writeFile("/a", "one\ntwo\n");
  expect(await workspace.diffPoints("m1", "m2")).toEqual([
    { path: "/a", change: "changed", kind: "file", diff: "--- /a\n+++ /a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" },
    {
      ...{ path: "/b", change: "removed", kind: "file" },
      diff: "--- /b\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n\\ No newline at end of file\n",
    },
    { path: "/c", change: "added", kind: "file" },
  ]);
  expect((await workspace.diffPoints("m1")).map(({ path }) => path)).toEqual(["/b", "/c"]);
  expect((await workspace.diffPoints(0, "m1")).map(({ change }) => change)).toEqual(["added", "added"]);
});

test("a glob finds names at any depth and stays below where it has no wildcard", async () => {
  const { workspace } = await newWorkspace();
  for (const path of ["/src/a.ts", "/src/deep/b.ts", "/src/deep/c.js", "/docs/d.md", "/.hidden", "/src-2/x.ts"])
    await workspace.writeFile(path, "");
  const found = async (pattern: string) => paths(await workspace.glob(pattern));
  expect(await found("/src/**/*.ts")).toEqual(["/src/a.ts", "/src/deep/b.ts"]);
  expect(await found("src/*.ts")).toEqual(["/src/a.ts"]);
  expect(await found("/**/*.{md,js}")).toEqual(["/docs/d.md", "/src/deep/c.js"]);
  expect(await found("/src/deep")).toEqual(["/src/deep"]);
  expect(await found("/.*")).toEqual(["/.hidden"]);
  expect(paths(await workspace.glob("/**/*.ts", { limit: 2 }))).toHaveLength(2);
});

test("two files are compared, and a file with what it could hold", async () => {
  const { workspace } = await newWorkspace();
  await workspace.writeFile("/a", "1\n2\n");
  await workspace.writeFile("/b", "1\n3\n");
  expect(await workspace.diff("/a", "/b")).toBe("--- /a\n+++ /b\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n");
  expect(await workspace.diffContent("/a", "1\n2\n")).toBe("");
  await workspace.writeFile("/long", "x\n".repeat(10_001));
  await expect(workspace.diff("/a", "/long")).rejects.toThrow(/^EFBIG: /);
});

test.each(["inlineLimit", "maxFileBytes", "maxPoints"])("%s must be a whole number", async (name) => {
  const { host } = await probeHost();
  expect(() => new Workspace({ host, [name]: 0 })).toThrow(expect.objectContaining({ code: "bad_config" }));
});

test("of many who append to one file at the same time, all count, also where it is not small", async () => {
  const { workspace } = await newWorkspace();
  await workspace.writeFile("/log", "-".repeat(10_000));
  await Promise.all(Array.from({ length: 50 }, () => workspace.appendFile("/log", "x")));
  expect((await workspace.stat("/log"))?.size).toBe(10_050);
});

test("what is damaged is said, and nothing else changes", async () => {
  const { workspace, host } = await newWorkspace();
  await workspace.writeFile("/long", "a".repeat(600_000));
  await workspace.writeFile("/short", "b");
  for (const id of ["m1", "m2"]) workspace.mark(id);
  host.sql("DELETE FROM perdure_file_body WHERE n = 1");
  await expect(workspace.readFile("/long")).rejects.toThrow("EIO: Of the 600000 bytes");
  await expect(workspace.appendFile("/long", "c")).rejects.toThrow("EIO: ");
  expect(await workspace.stat("/long")).toMatchObject({ size: 600_000 });
  host.sql("UPDATE perdure_cell SET value = 'x' WHERE key = 'workspace-point:main:m1'");
  expect(workspace.points()).toMatchObject([{ messageId: "m2" }]);
  expect(() => workspace.restore("m1")).toThrow("There is no point");
  host.sql("UPDATE perdure_cell SET value = 'x' WHERE key = 'workspace:main'");
  await expect(workspace.writeFile("/short", "c")).rejects.toMatchObject({ code: "bad_state" });
  expect(() => workspace.mark("m3")).toThrow("cannot be read");
  expect(await workspace.readFile("/short")).toBe("b");
});
