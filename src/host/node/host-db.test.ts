import fs from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { HostDb } from "./host-db.ts";

test("after a sync that failed everything is written anew, into the main file, and not synced again on the same log", async () => {
  const dir = fs.mkdtempSync(path.join(tmpdir(), "perdure-test-"));
  const db = new HostDb(dir);
  const real = fs.fdatasync;
  let syncs = 0;
  Object.assign(fs, {
    fdatasync: (_fd: number, done: (error: Error) => void) => {
      syncs++;
      process.nextTick(done, new Error("EIO: i/o error, fdatasync"));
    },
  });
  onTestFinished(() => {
    Object.assign(fs, { fdatasync: real });
    db.close();
    fs.rmSync(dir, { recursive: true, force: true });
  });
  db.wake("Counter/a");
  await expect(db.durable()).rejects.toThrow("EIO");
  expect(fs.statSync(path.join(dir, "host.db-wal")).size).toBeGreaterThan(0);
  await db.durable();
  expect(syncs).toBe(1);
  expect(fs.statSync(path.join(dir, "host.db-wal")).size).toBe(0);
  expect(db.awake()).toEqual(["Counter/a"]);
});
