import { expect, test } from "vitest";
import { MemoryFiles } from "./memory-files.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (data: Uint8Array): string => new TextDecoder().decode(data);

test("files, directories and links", async () => {
  const fs = new MemoryFiles({ files: { "/a/b.txt": "b" } });
  await fs.appendFileBytes("/a/b.txt", bytes("!"));
  await fs.appendFileBytes("/new/deep/c.txt", bytes("c"));
  await fs.symlink("../a", "/new/link");
  expect(text(await fs.readFileBytes("/new/link/b.txt"))).toBe("b!");
  expect(await fs.stat("/new/link")).toMatchObject({ type: "directory" });
  expect(await fs.lstat("/new/link")).toMatchObject({ type: "symlink" });
  expect(await fs.stat("/nope")).toBeNull();
  expect(await fs.readDir("/new")).toEqual([
    { name: "deep", type: "directory" },
    { name: "link", type: "symlink" },
  ]);
  await fs.writeFileBytes("/new/link/b.txt", bytes("through"));
  expect(text(await fs.readFileBytes("/a/b.txt"))).toBe("through");
  await fs.rename("/a", "/z");
  expect(fs.files().map(({ path }) => path)).toEqual(["/new/deep/c.txt", "/z/b.txt"]);
  await fs.rm("/new/link");
  await fs.rm("/new", { recursive: true });
  await fs.rm("/nope", { force: true });
  await fs.mkdir("/x/y", { recursive: true });
  await fs.mkdir("/x/y", { recursive: true });
  expect(await fs.readDir("/")).toHaveLength(2);
});

test("what cannot be done says so with its POSIX name", async () => {
  const fs = new MemoryFiles({ files: { "/d/f": "x" } });
  await fs.symlink("/l2", "/l1");
  await fs.symlink("/l1", "/l2");
  const failures: [string, Promise<unknown>][] = [
    ["ENOENT", fs.readFileBytes("/nope")],
    ["EISDIR", fs.readFileBytes("/d")],
    ["EISDIR", fs.writeFileBytes("/d", bytes(""))],
    ["ENOTDIR", fs.readDir("/d/f")],
    ["ENOTDIR", fs.writeFileBytes("/d/f/g", bytes(""))],
    ["EEXIST", fs.mkdir("/d")],
    ["ENOENT", fs.mkdir("/p/q")],
    ["ENOTEMPTY", fs.rm("/d")],
    ["EPERM", fs.rm("/", { recursive: true })],
    ["EINVAL", fs.rename("/d", "/d/e")],
    ["EINVAL", fs.readFileBytes("relative")],
    ["EINVAL", fs.readlink("/d")],
    ["ELOOP", fs.readFileBytes("/l1")],
    ["ENAMETOOLONG", fs.stat(`/${"x".repeat(5_000)}`)],
  ];
  for (const [name, promise] of failures) await expect(promise, name).rejects.toThrow(new RegExp(`^${name}: `));
});

test("it holds no more than it was told to, and room comes back", async () => {
  const fs = new MemoryFiles({ maxBytes: 10, maxEntries: 3 });
  await fs.writeFileBytes("/a", bytes("12345"));
  await fs.writeFileBytes("/a", bytes("1234567890"));
  await expect(fs.writeFileBytes("/b", bytes("1"))).rejects.toThrow(/^ENOSPC: only 10 bytes/);
  await fs.rm("/a");
  await fs.writeFileBytes("/b", bytes("1234567890"));
  await fs.mkdir("/c");
  await fs.mkdir("/d");
  await expect(fs.mkdir("/e")).rejects.toThrow(/^ENOSPC: only 3 entries/);
  await fs.rm("/c");
  await fs.mkdir("/e");
});

test("bytes given and taken are copies", async () => {
  const fs = new MemoryFiles();
  const mine = bytes("abc");
  await fs.writeFileBytes("/x", mine);
  mine[0] = 0;
  const got = await fs.readFileBytes("/x");
  got[1] = 0;
  expect(text(await fs.readFileBytes("/x"))).toBe("abc");
});
