import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { probeHost } from "../../../test/chat/probe-host.ts";
import { blobFiles, bucketFiles, directoryFiles, type LargeFiles } from "./large-files.ts";
import { Workspace } from "./workspace.ts";

const NAME = `${"a".repeat(32)}/main/${"0".repeat(64)}`;

function directory(): string {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), "perdure-large-"));
  onTestFinished(() => fs.rmSync(made, { recursive: true, force: true }));
  return path.join(made, "files");
}

/** A bucket as clients of S3 and R2 have it: objects come as bodies, and a missing one is null. */
function fakeBucket() {
  const objects = new Map<string, Uint8Array>();
  return {
    objects,
    async put(key: string, bytes: Uint8Array) {
      objects.set(key, bytes.slice());
      return { etag: "x" };
    },
    async get(key: string) {
      const bytes = objects.get(key);
      return bytes === undefined ? null : new Response(new Uint8Array(bytes));
    },
    async delete(key: string) {
      objects.delete(key);
    },
  };
}

const storages: readonly (readonly [string, () => Promise<LargeFiles>])[] = [
  ["the agent's blobs", async () => blobFiles((await probeHost()).host)],
  ["a bucket", async () => bucketFiles(fakeBucket(), { prefix: "files/" })],
  ["a directory", async () => directoryFiles(directory())],
];

test.each(storages)("%s: what is put can be got, and is gone when deleted", async (_name, open) => {
  const files = await open();
  expect(await files.get(NAME)).toBeUndefined();
  await files.delete(NAME);
  const bytes = Uint8Array.from({ length: 70_000 }, (_, n) => n % 251);
  await files.put(NAME, bytes);
  await files.put(NAME, bytes);
  expect(Buffer.compare((await files.get(NAME)) ?? new Uint8Array(), bytes)).toBe(0);
  await files.delete(NAME);
  expect(await files.get(NAME)).toBeUndefined();
});

test("two namespaces with the same bytes do not take them from each other", async () => {
  const { host } = await probeHost();
  const [a, b] = ["a", "b"].map((namespace) => new Workspace({ host, namespace, inlineLimit: 10_000 }));
  const text = "x".repeat(20_000);
  await a?.writeFile("/f", text);
  await b?.writeFile("/f", text);
  await a?.deleteAll();
  expect(await b?.readFile("/f")).toBe(text);
});

test("a workspace that is replaced before it is used says nothing about where large files are; two that are used must agree", async () => {
  const { host } = await probeHost();
  const unused = new Workspace({ host });
  const bucket = fakeBucket();
  const replaced = new Workspace({ host, inlineLimit: 10_000, largeFiles: bucketFiles(bucket) });
  await replaced.writeFile("/f", "x".repeat(20_000));
  expect(bucket.objects.size).toBe(1);
  // One that does not care finds it all the same.
  expect(await unused.readFile("/f")).toHaveLength(20_000);
  const other = new Workspace({ host, largeFiles: bucketFiles(fakeBucket()) });
  await expect(other.readFile("/f")).rejects.toThrow(expect.objectContaining({ code: "bad_config" }));
});

test("two agents in the same bucket have names of their own", async () => {
  const bucket = fakeBucket();
  const { host } = await probeHost();
  const other = new Proxy(host, {
    get(target, key) {
      const value: unknown = key === "id" ? "another" : Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const options = { inlineLimit: 10_000, largeFiles: bucketFiles(bucket, { prefix: "p/" }) };
  await new Workspace({ host, ...options }).writeFile("/f", "x".repeat(20_000));
  await new Workspace({ host: other, namespace: "o", ...options }).writeFile("/f", "x".repeat(20_000));
  const keys = [...bucket.objects.keys()];
  expect(new Set(keys.map((key) => key.split("/")[1])).size).toBe(2);
  expect(keys.every((key) => key.startsWith("p/"))).toBe(true);
});

test("a directory takes no names that lead elsewhere, and leaves no drafts", async () => {
  const at = directory();
  const files = directoryFiles(at);
  for (const name of ["../x", "/etc/passwd", `a/../${"0".repeat(64)}`, "", `${"a".repeat(32)}/../${"0".repeat(64)}`])
    await expect(files.put(name, new Uint8Array())).rejects.toThrow("no name of a large file");
  await files.put(NAME, new Uint8Array(5));
  fs.writeFileSync(path.join(at, `${NAME}.draft`), "what a crash left");
  await files.delete(NAME);
  expect(fs.readdirSync(path.dirname(path.join(at, NAME)))).toEqual([]);
});
