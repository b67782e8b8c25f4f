import fs from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { DiskAgentFile } from "./agent-file.ts";
import { SpareFiles } from "./spare-files.ts";
import { templateBytes } from "./open-sqlite.ts";

test("a new database whose life ended before it was synced is synced with its directory by the next life", async () => {
  const dir = fs.mkdtempSync(path.join(tmpdir(), "perdure-test-"));
  const spares = new SpareFiles(path.join(dir, "spare"), templateBytes());
  onTestFinished(async () => {
    await spares.close();
    fs.rmSync(dir, { recursive: true, force: true });
  });
  const synced = vi.spyOn(fs, "fsync");
  const syncedNow = vi.spyOn(fs, "fsyncSync");
  onTestFinished(() => {
    synced.mockRestore();
    syncedNow.mockRestore();
  });
  const first = new DiskAgentFile(dir, "Counter/a", spares, 1e9);
  first.open().db.close();
  first.closed();
  // The two directories that were made have their own entries in those above.
  expect(syncedNow).toHaveBeenCalledTimes(2);
  expect(synced).not.toHaveBeenCalled();
  const second = new DiskAgentFile(dir, "Counter/a", spares, 1e9);
  const { db } = second.open();
  await second.sync();
  expect(synced).toHaveBeenCalledTimes(1);
  await second.sync();
  expect(synced).toHaveBeenCalledTimes(1);
  db.close();
  second.closed();
});
