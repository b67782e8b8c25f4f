import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "./temporary-folder.ts";

test("the first folder that can be written to is taken, and for a jail of another user one that is open to all", async () => {
  const own = mkdtempSync(join(tmpdir(), "perdure-own-"));
  onTestFinished(() => rmSync(own, { recursive: true, force: true }));
  chmodSync(own, 0o700);
  const missing = ["/nowhere/at/all"];
  expect(await temporaryFolder(false, [...missing, own])).toBe(own);
  expect(await temporaryFolder(true, [...missing, own])).toBeUndefined();
  expect(await temporaryFolder(true, [...missing, own, "/dev/shm"])).toBe("/dev/shm");
  expect(await temporaryFolder(false, missing)).toBeUndefined();
});
