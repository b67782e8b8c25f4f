import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type FileChange, FileChanges } from "./agent-directory-watch.ts";

function openRoot(): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "perdure-changes-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return root;
}

/** Notes what it is told as `kind path`. */
function watchRoot(root: string) {
  const told: string[] = [];
  const failures: unknown[] = [];
  const changed = async (changes: readonly FileChange[]) => {
    for (const { kind, file } of changes) told.push(`${kind} ${file.slice(root.length + 1)}`);
  };
  const changes = new FileChanges(root, changed, (error) => failures.push(error));
  onTestFinished(() => changes.close());
  return { changes, told, failures };
}

const soon = { timeout: 15_000, interval: 10 };

test("added, changed and removed, in folders that were there and in new ones", async () => {
  const root = openRoot();
  writeFileSync(join(root, "a"), "1");
  const { changes, told, failures } = watchRoot(root);
  // Between the first look and the start.
  writeFileSync(join(root, "early"), "1");
  changes.start();
  await expect.poll(() => told, soon).toEqual(["added early"]);
  writeFileSync(join(root, "a"), "2!");
  await expect.poll(() => told, soon).toContain("changed a");
  mkdirSync(join(root, "x", "y"), { recursive: true });
  writeFileSync(join(root, "x", "y", "deep"), "1");
  await expect.poll(() => told, soon).toContain("added x/y/deep");
  writeFileSync(join(root, "x", "y", "deep"), "22");
  await expect.poll(() => told, soon).toContain("changed x/y/deep");
  rmSync(join(root, "x"), { recursive: true });
  await expect.poll(() => told, soon).toContain("removed x/y/deep");
  expect(failures).toEqual([]);
});

test("the same size and another time is a change; hidden files and packages do not count", async () => {
  const root = openRoot();
  writeFileSync(join(root, "a"), "1");
  const { changes, told } = watchRoot(root);
  changes.start();
  mkdirSync(join(root, "node_modules"));
  writeFileSync(join(root, "node_modules", "index.js"), "1");
  writeFileSync(join(root, ".a.swp"), "1");
  utimesSync(join(root, "a"), new Date(), new Date(Date.now() + 5000));
  await expect.poll(() => told, soon).toEqual(["changed a"]);
  // A link that leads nowhere, or round in a circle, is not an error.
  symlinkSync(join(root, "nowhere"), join(root, "broken"));
  for (const name of ["round", "about"]) symlinkSync(root, join(root, name));
  writeFileSync(join(root, "b"), "1");
  await expect.poll(() => told, soon).toEqual(["changed a", "added b"]);
});

test("a directory that goes and comes back is found again", async () => {
  const root = openRoot();
  writeFileSync(join(root, "a"), "1");
  const { changes, told } = watchRoot(root);
  changes.start();
  rmSync(root, { recursive: true });
  await expect.poll(() => told, soon).toEqual(["removed a"]);
  mkdirSync(root);
  writeFileSync(join(root, "b"), "1");
  await expect.poll(() => told, soon).toContain("added b");
  writeFileSync(join(root, "c"), "1");
  await expect.poll(() => told, soon).toContain("added c");
});

test("nothing is told while the last changes are being worked on, and all of it afterwards", async () => {
  const root = openRoot();
  const calls: string[][] = [];
  let finish: (() => void) | undefined;
  const changes = new FileChanges(
    root,
    (list) => {
      calls.push(list.map(({ file }) => file.slice(root.length + 1)));
      return new Promise((resolve) => (finish = resolve));
    },
    () => undefined,
  );
  onTestFinished(() => changes.close());
  const witness = watchRoot(root);
  changes.start();
  witness.changes.start();
  writeFileSync(join(root, "a"), "1");
  await expect.poll(() => calls, soon).toEqual([["a"]]);
  writeFileSync(join(root, "b"), "1");
  await expect.poll(() => witness.told, soon).toContain("added b");
  expect(calls).toEqual([["a"]]);
  finish?.();
  await expect.poll(() => calls, soon).toEqual([["a"], ["b"]]);
});

test("closed, it tells nothing", async () => {
  const root = openRoot();
  const [closed, open] = [watchRoot(root), watchRoot(root)];
  closed.changes.start();
  open.changes.start();
  closed.changes.close();
  writeFileSync(join(root, "a"), "1");
  await expect.poll(() => open.told, soon).toEqual(["added a"]);
  expect(closed.told).toEqual([]);
});
