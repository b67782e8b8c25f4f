import { expect, test } from "vitest";
import { PerdureError } from "../../../base/error.ts";
import { MemoryFiles } from "../memory-files.ts";
import { callErrorText } from "./answer-call.ts";
import { answerFileCall, type BashMount } from "./file-calls.ts";
import { type FileCall, readWorkerMessage } from "./protocol.ts";

const MAX = 1_000;

function ask(mounts: readonly BashMount[], call: Partial<FileCall>): Promise<unknown> {
  return answerFileCall({ kind: "file", op: "read", mount: 0, path: "/a", ...call }, mounts, MAX);
}

test("bytes that are a piece of a larger buffer are sent without the rest of it", async () => {
  const fs = new MemoryFiles();
  const shared = Buffer.from("secret and public");
  fs.readFileBytes = async () => shared.subarray(11);
  fs.stat = async () => ({ type: "file", size: 6, mtimeMs: 0, mode: 0o644 });
  const sent = (await ask([{ path: "/", fs, mode: "read" }], {})) as Uint8Array;
  expect(Buffer.from(sent.buffer).toString()).toBe("public");
});

test("every write is refused where only reading is allowed, and what is too large", async () => {
  const read: BashMount[] = [{ path: "/", fs: new MemoryFiles({ files: { "/a": "x" } }), mode: "read" }];
  for (const op of ["write", "append", "mkdir", "rm", "rename", "symlink", "chmod", "utimes"] as const) {
    await expect(ask(read, { op, to: "/b", number: 1 }), op).rejects.toThrow(/^EROFS: /);
  }
  const write: BashMount[] = [
    { path: "/", fs: new MemoryFiles({ files: { "/big": "x".repeat(MAX + 1) } }), mode: "read-write" },
  ];
  await expect(ask(write, { op: "write", bytes: new Uint8Array(MAX + 1) })).rejects.toThrow(/^EFBIG: /);
  await expect(ask(write, { path: "/big" })).rejects.toThrow(/^EFBIG: /);
  await expect(ask(write, { mount: 1 })).rejects.toThrow(/^ENOENT: no such mount/);
  await expect(ask(write, { path: "a" })).rejects.toThrow(/^EINVAL: /);
  await expect(ask(write, { path: "/a\0b" })).rejects.toThrow(/^EINVAL: /);
});

test("the real path follows links, and gives up on circles", async () => {
  const fs = new MemoryFiles({ files: { "/real/deep/f": "x" } });
  await fs.symlink("/real", "/one");
  await fs.symlink("../one/deep", "/real/two");
  await fs.symlink("/circle", "/circle");
  const mounts: BashMount[] = [{ path: "/", fs, mode: "read" }];
  expect(await ask(mounts, { op: "realpath", path: "/one/two/f" })).toBe("/real/deep/f");
  await expect(ask(mounts, { op: "realpath", path: "/circle" })).rejects.toThrow(/^ELOOP: /);
  await expect(ask(mounts, { op: "realpath", path: "/nope" })).rejects.toThrow(/^ENOENT: /);
});

test("what a script is told of a failure names no place of the host", () => {
  const call: FileCall = { kind: "file", op: "read", mount: 0, path: "/a" };
  expect(callErrorText(new PerdureError("not_found", "ENOENT: x"), call)).toBe("ENOENT: x");
  const hostError = new Error("EACCES: permission denied, open '/srv/data/x'");
  expect(callErrorText(hostError, call)).toBe("EACCES: the file system refused it, '/a'");
  expect(callErrorText(new Error("at /srv/x.js:1"), call)).toBe("EIO: the file system refused it, '/a'");
  expect(callErrorText("odd", { kind: "fetch", url: "", method: "", headers: {} })).toBe("The host could not do this.");
});

test.each([
  null,
  "run",
  {},
  { type: "done", run: 1 },
  { type: "done", run: -1, exitCode: 0, stdout: "", stderr: "" },
  { type: "call", run: 1, call: 0, ask: { kind: "file", op: "exec", mount: 0, path: "/" } },
  { type: "call", run: 1, call: 0, ask: { kind: "file", op: "read", mount: "0", path: "/" } },
  { type: "call", run: 1, call: 0, ask: { kind: "file", op: "read", mount: 0, path: 5 } },
  { type: "call", run: 1, call: 0, ask: { kind: "eval", code: "1" } },
  { type: "call", run: 1, call: 0.5, ask: { kind: "tool", name: "a", args: "1" } },
])("what is no message of a shell is none: %j", (value) => {
  expect(readWorkerMessage(value)).toBeUndefined();
});
