import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { localWorkspace } from "../remote.ts";
import { createWorkspaceTools } from "../tools/create-workspace-tools.ts";

/** A directory with a workspace in it, and something beside it that nobody may reach. */
function folder() {
  const outer = fs.mkdtempSync(path.join(os.tmpdir(), "perdure-local-"));
  onTestFinished(() => fs.rmSync(outer, { recursive: true, force: true }));
  const dir = path.join(outer, "inside");
  fs.mkdirSync(dir);
  fs.writeFileSync(path.join(outer, "secret"), "secret");
  return { outer, dir, workspace: localWorkspace(dir) };
}

test("a directory is used as a workspace", async () => {
  const { dir, workspace } = folder();
  await workspace.writeFile("/a/b.txt", "one\n");
  await workspace.appendFile("/a/b.txt", "two\n");
  expect(fs.readFileSync(path.join(dir, "a/b.txt"), "utf8")).toBe("one\ntwo\n");
  await workspace.symlink("/a", "/way");
  expect(fs.readlinkSync(path.join(dir, "way"))).toBe("a");
  expect(await workspace.readFile("/way/b.txt")).toBe("one\ntwo\n");
  expect(await workspace.lstat("/way")).toMatchObject({ type: "symlink", target: "a" });
  await workspace.chmod("/a/b.txt", 0o600);
  await workspace.utimes("/a/b.txt", 7_000);
  expect(await workspace.stat("/a/b.txt")).toEqual({
    ...{ path: "/a/b.txt", name: "b.txt", type: "file", size: 8, mtimeMs: 7_000, mode: 0o600 },
  });
  await workspace.mkdir("/x/y", { recursive: true });
  await workspace.mkdir("/x/y", { recursive: true });
  await workspace.cp("/a", "/x/copy", { recursive: true });
  await workspace.rename("/x/copy/b.txt", "/z/c.txt");
  expect((await workspace.glob("/**/*.txt")).map((entry) => entry.path)).toEqual(["/a/b.txt", "/z/c.txt"]);
  expect((await workspace.readDir("/")).map(({ name, type }) => `${name} ${type}`)).toEqual([
    ...["a directory", "way symlink", "x directory", "z directory"],
  ]);
  await workspace.updateFile("/z/c.txt", (text) => `${text}three\n`);
  expect(await workspace.diff("/a/b.txt", "/z/c.txt")).toContain("+three");
  await workspace.rm("/x", { recursive: true });
  await workspace.rm("/none", { force: true });
  expect(await workspace.readFile("/x/copy")).toBeNull();
  // No drafts are left.
  expect(fs.readdirSync(path.join(dir, "z"))).toEqual(["c.txt"]);
});

test("nothing leads out: neither paths, nor links that are there, nor links that are made", async () => {
  const { outer, dir, workspace } = folder();
  fs.symlinkSync(path.join(outer, "secret"), path.join(dir, "link"));
  fs.symlinkSync("..", path.join(dir, "up"));
  fs.symlinkSync(path.join(outer, "made"), path.join(dir, "dangling"));
  await workspace.writeFile("/file", "x");
  const out = [
    () => workspace.readFile("/link"),
    () => workspace.readFileBytes("/link"),
    () => workspace.readFile("/up/secret"),
    () => workspace.stat("/link"),
    () => workspace.readDir("/up"),
    () => workspace.writeFile("/link", "gone"),
    () => workspace.writeFile("/up/secret", "gone"),
    () => workspace.writeFile("/up/new/deep", "gone"),
    () => workspace.writeFile("/dangling", "gone"),
    () => workspace.appendFile("/link", "gone"),
    () => workspace.appendFile("/dangling", "gone"),
    () => workspace.updateFile("/link", () => "gone"),
    () => workspace.mkdir("/up/new"),
    () => workspace.mkdir("/up/new/deep", { recursive: true }),
    () => workspace.rm("/up/secret"),
    () => workspace.rename("/file", "/up/file"),
    () => workspace.rename("/up/secret", "/mine"),
    () => workspace.cp("/file", "/up/file"),
    () => workspace.symlink("../..", "/out"),
    () => workspace.symlink("/x", "/up/link"),
    () => workspace.chmod("/link", 0),
    () => workspace.utimes("/link", 0),
    () => workspace.readFile("/../secret"),
  ];
  for (const [at, attempt] of out.entries()) {
    const message = await attempt().then(
      () => "nothing was refused",
      (thrown: Error) => thrown.message,
    );
    expect([at, message]).toEqual([at, expect.stringMatching(/^(EPERM|EINVAL): /)]);
    expect(message).not.toContain(outer);
  }
  expect(fs.readdirSync(outer).sort()).toEqual(["inside", "secret"]);
  expect(fs.readFileSync(path.join(outer, "secret"), "utf8")).toBe("secret");
  expect(await workspace.readlink("/link")).toBe("(outside of the workspace)");
  // A search goes around them, and deleting a link deletes only it.
  expect((await workspace.glob("/**/secret")).map((entry) => entry.path)).toEqual([]);
  await workspace.rm("/up");
  expect(fs.existsSync(outer)).toBe(true);
});

test("errors are those of a workspace, and never name a real path", async () => {
  const { outer, workspace } = folder();
  await workspace.writeFile("/d/a", "x");
  await workspace.writeFile("/f", "x");
  const failing: readonly (readonly [() => Promise<unknown>, RegExp])[] = [
    [() => workspace.readFileBytes("/none"), /^ENOENT: \/none/],
    [() => workspace.readFile("/d"), /^EISDIR: /],
    [() => workspace.writeFile("/d", ""), /^EISDIR: /],
    [() => workspace.writeFile("/f/below", ""), /^E(NOTDIR|EXIST|NOENT): /],
    [() => workspace.mkdir("/d"), /^EEXIST: /],
    [() => workspace.mkdir("/f", { recursive: true }), /^EEXIST: /],
    [() => workspace.mkdir("/no/deep"), /^ENOENT: /],
    [() => workspace.rm("/d"), /^ENOTEMPTY: /],
    [() => workspace.rm("/"), /^EPERM: /],
    [() => workspace.rename("/none", "/x"), /^ENOENT: /],
    [() => workspace.rename("/d", "/d/e"), /^EINVAL: /],
    [() => workspace.cp("/d", "/e"), /^EISDIR: /],
    [() => workspace.cp("/d", "/d/e", { recursive: true }), /^EINVAL: /],
    [() => workspace.cp("/none", "/e"), /^ENOENT: /],
    [() => workspace.readlink("/f"), /^EINVAL: /],
    [() => workspace.readDir("/f"), /^ENOTDIR: /],
  ];
  for (const [attempt, message] of failing) {
    const failed = await attempt().catch((thrown: unknown) => thrown);
    expect(failed).toMatchObject({ name: "PerdureError", message: expect.stringMatching(message) });
    expect(String(failed)).not.toContain(outer);
  }
  const missing = await localWorkspace(path.join(outer, "not-there")).readFileBytes("/a").catch(String);
  expect(missing).toMatch(/ENOENT: \/a/);
  await expect(localWorkspace(path.join(outer, "inside"), { readOnly: true }).writeFile("/a", "")).rejects.toThrow(
    /^EROFS: /,
  );
});

test("the tools work on it, and edits side by side all count", async () => {
  const { workspace } = folder();
  const { edit, grep } = createWorkspaceTools(workspace, { bash: false });
  await workspace.writeFile("/f", "a b c d");
  const options = { toolCallId: "t", messages: [], context: {} };
  await Promise.all(
    ["a", "b", "c", "d"].map((old) =>
      edit?.execute?.({ path: "/f", old_string: old, new_string: old.toUpperCase() }, options),
    ),
  );
  expect(await workspace.readFile("/f")).toBe("A B C D");
  expect(await grep?.execute?.({ pattern: "[A-D] [A-D]" }, options)).toMatchObject({ matches: 1 });
});

test("a file that becomes a link to the outside while it is read is not followed", async () => {
  const { workspace } = folder();
  await workspace.mkdir("/d");
  let done = false;
  const flip = async () => {
    for (let n = 0; n < 150; n++) {
      // Leads to a file of the workspace, until it is moved up.
      await workspace.symlink("/secret", "/d/way");
      await workspace.writeFile("/f", "ours");
      await workspace.rename("/d/way", "/f");
      await workspace.rm("/f");
    }
    done = true;
  };
  const seen = new Set<string>();
  const read = async () => {
    while (!done) {
      const bytes = await workspace.readFileBytes("/f").catch(() => undefined);
      if (bytes !== undefined) seen.add(new TextDecoder().decode(bytes));
    }
  };
  await Promise.all([flip(), read(), read(), read(), read()]);
  expect([...seen]).toEqual(["ours"]);
});
