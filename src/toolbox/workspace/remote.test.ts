import { expect, test } from "vitest";
import { probeHost } from "../../../test/chat/probe-host.ts";
import { RemoteWorkspace, sharedWorkspace } from "./remote.ts";
import { callWorkspace, type WorkspaceAccess } from "./serve.ts";
import { toSandboxFiles } from "./sandbox-files.ts";
import { createWorkspaceTools } from "./tools/create-workspace-tools.ts";
import { Workspace } from "./workspace.ts";

/** A workspace, and what somebody has of it who can only send plain data there. */
async function shared(access: WorkspaceAccess = "read-write") {
  const { host } = await probeHost();
  const workspace = new Workspace({ host });
  const asked: string[] = [];
  const remote = sharedWorkspace(async (operation, args) => {
    asked.push(operation);
    return structuredClone(await callWorkspace(workspace, operation, structuredClone(args), access));
  });
  return { workspace, remote, asked };
}

test("a child works in its parent's files", async () => {
  const { workspace, remote } = await shared();
  await remote.writeFile("/d/a", "one\n");
  await remote.appendFile("/d/a", "two\n");
  await remote.writeFileBytes("/d/b", new Uint8Array([1, 2]));
  await remote.appendFileBytes("/d/b", new Uint8Array([3]));
  expect(await workspace.readFile("/d/a")).toBe("one\ntwo\n");
  expect([...(await remote.readFileBytes("/d/b"))]).toEqual([1, 2, 3]);
  await remote.symlink("a", "/d/l");
  expect(await remote.readlink("/d/l")).toBe("a");
  expect((await remote.readDir("/d", { limit: 2 })).map(({ name }) => name)).toEqual(["a", "b"]);
  expect((await remote.glob("/**/a")).map(({ path }) => path)).toEqual(["/d/a"]);
  await remote.mv("/d/a", "/d/c");
  await remote.cp("/d/c", "/e");
  await remote.chmod("/e", 0o600);
  await remote.utimes("/e", 5);
  expect(await remote.stat("/e")).toMatchObject({ mode: 0o600, mtimeMs: 5 });
  expect(await remote.lstat("/d/l")).toMatchObject({ type: "symlink" });
  expect(await remote.diffContent("/e", "one\n")).toContain("-two");
  expect(await remote.diff("/e", "/d/c")).toBe("");
  await remote.writeFileStream("/s", new Blob(["stream"]).stream());
  expect(await new Response(await remote.readFileStream("/s")).text()).toBe("stream");
  expect(await remote.readFileStream("/none")).toBeNull();
  await remote.mkdir("/new/deep", { recursive: true });
  await remote.rm("/d", { recursive: true });
  expect([await remote.exists("/d"), await remote.exists("/new/deep")]).toEqual([false, true]);
  await expect(remote.readFileBytes("/none")).rejects.toThrow(/^ENOENT: /);
});

test("edits of parent and child at the same time all count", async () => {
  const { workspace, remote } = await shared();
  await workspace.writeFile("/f", Array.from({ length: 20 }, (_, n) => `<${n}>`).join(""));
  const theirs = createWorkspaceTools(remote, { bash: false }).edit?.execute;
  const ours = createWorkspaceTools(workspace, { bash: false }).edit?.execute;
  const options = { toolCallId: "t", messages: [], context: {} };
  await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      (n % 2 === 0 ? theirs : ours)?.({ path: "/f", old_string: `<${n}>`, new_string: `(${n})` }, options),
    ),
  );
  expect(await workspace.readFile("/f")).not.toContain("<");
});

test("who may only read changes nothing", async () => {
  const { workspace, remote } = await shared("read");
  await workspace.writeFile("/a", "a");
  expect(await remote.readFile("/a")).toBe("a");
  const writes = [
    () => remote.writeFile("/a", "b"),
    () => remote.writeFileBytes("/a", new Uint8Array()),
    () => remote.appendFile("/a", "b"),
    () => remote.appendFileBytes("/a", new Uint8Array()),
    () => remote.updateFile("/a", () => "b"),
    () => remote.mkdir("/b"),
    () => remote.rm("/a"),
    () => remote.rename("/a", "/b"),
    () => remote.cp("/a", "/b"),
    () => remote.symlink("/a", "/b"),
    () => remote.chmod("/a", 0),
    () => remote.utimes("/a", 0),
  ];
  for (const write of writes)
    await expect(write()).rejects.toThrow(
      expect.objectContaining({ code: "read_only", message: expect.stringMatching(/^EROFS: /) }),
    );
  expect(await workspace.readFile("/a")).toBe("a");
});

test.each([
  ["deleteAll", []],
  ["restore", [0]],
  ["constructor", []],
  ["__proto__", []],
  ["readFile", []],
  ["readFile", [{}]],
  ["writeFile", ["/a", 1]],
  ["writeFileBytes", ["/a", "text"]],
  ["chmod", ["/a", "7"]],
])("%s(%j) cannot be asked for", async (operation, args) => {
  const { workspace } = await shared();
  await expect(callWorkspace(workspace, operation, args, "read-write")).rejects.toThrow(
    expect.objectContaining({ code: "bad_input" }),
  );
});

test("options that are none do no harm", async () => {
  const { workspace } = await shared();
  await workspace.writeFile("/d/a", "");
  const odd = { recursive: "yes", limit: -1, offset: Number.NaN, other: {} };
  await expect(callWorkspace(workspace, "rm", ["/d", odd], "read-write")).rejects.toThrow(/^ENOTEMPTY: /);
  expect(await callWorkspace(workspace, "readDir", ["/d", odd], "read")).toHaveLength(1);
  expect(await callWorkspace(workspace, "readDir", ["/d", null], "read")).toHaveLength(1);
});

test("a storage of eight methods serves sandboxes as far as it can", async () => {
  const { workspace } = await shared();
  const files = toSandboxFiles({
    readFileBytes: async (path) => ((await workspace.exists(path)) ? workspace.readFileBytes(path) : null),
    writeFile: (path, content) => workspace.writeFile(path, content),
    readDir: (path) => workspace.readDir(path),
    rm: (path, options) => workspace.rm(path, options),
    mkdir: (path, options) => workspace.mkdir(path, options),
    stat: async (path) => {
      const stat = await workspace.stat(path);
      return stat && { type: stat.type, size: stat.size };
    },
  });
  const bytes = (text: string) => new TextEncoder().encode(text);
  await files.writeFileBytes("/d/a", bytes("one"));
  await files.appendFileBytes("/d/a", bytes(" two"));
  await files.appendFileBytes("/d/b", bytes("new"));
  await files.rename("/d", "/e");
  expect(await workspace.readFile("/e/a")).toBe("one two");
  expect(await files.stat("/e")).toEqual({ type: "directory", size: 0, mode: 0o755, mtimeMs: 0 });
  expect(await files.stat("/d")).toBeNull();
  await expect(files.rename("/e", "/e/f")).rejects.toThrow(/^EINVAL: /);
  await expect(files.readFileBytes("/none")).rejects.toThrow(/^ENOENT: /);
  await expect(files.symlink("/e", "/l")).rejects.toThrow(/^EPERM: /);
  await expect(files.writeFileBytes("/bin", new Uint8Array([0, 255]))).rejects.toThrow(/^EINVAL: /);
  await files.chmod("/e/a", 0);
  await files.utimes("/e/a", 0);
  // One that has everything is used as it is.
  expect(toSandboxFiles(workspace)).toBe(workspace);
  expect(toSandboxFiles(new RemoteWorkspace(async () => null))).toBeInstanceOf(RemoteWorkspace);
});
