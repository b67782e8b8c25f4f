import { statSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { tempDir } from "../host/open-host.ts";
import { WalWatch, type Written } from "./wal-watch.ts";

const COMMITS = 200;

/** The same commits on a database whose log is copied after so many pages; 0: never. */
function write(autocheckpoint: number): { written: Written; logBytes: number } {
  const file = join(tempDir(), "one.db");
  const db = new Database(file);
  db.pragma("journal_mode = WAL");
  db.pragma(`wal_autocheckpoint = ${autocheckpoint}`);
  const watch = new WalWatch(file);
  db.exec("CREATE TABLE row (id INTEGER PRIMARY KEY, text TEXT)");
  watch.look();
  const insert = db.prepare("INSERT INTO row (text) VALUES (?)");
  for (let i = 0; i < COMMITS; i++) {
    insert.run("x".repeat(i * 20));
    watch.look();
  }
  const logBytes = statSync(`${file}-wal`).size;
  db.close();
  return { written: watch.written, logBytes };
}

test("every byte of a log is counted", () => {
  const { written, logBytes } = write(0);
  expect(written.bytes).toBe(logBytes);
  expect(written.frames).toBeGreaterThanOrEqual(COMMITS);
  expect(written.checkpoints).toBe(0);
});

test("a log that is written from its beginning again loses nothing, and its copies are counted", () => {
  const whole = write(0).written;
  const { written, logBytes } = write(30);
  expect(written.frames).toBe(whole.frames);
  expect(written.checkpoints).toBeGreaterThan(5);
  expect(logBytes).toBeLessThan(whole.bytes / 2);
  expect(written.bytes).toBeGreaterThan(whole.bytes);
  expect(written.bytes).toBeLessThan(whole.bytes * 2);
});
