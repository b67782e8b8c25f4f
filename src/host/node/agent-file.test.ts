import fs from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type Database from "better-sqlite3";
import { expect, onTestFinished, test, vi } from "vitest";
import { agentFileName, DiskAgentFile } from "./agent-file.ts";
import { templateBytes } from "./open-sqlite.ts";
import { SpareFiles } from "./spare-files.ts";

const ID = "Counter/a";
const KIB = 1024;
/** More than a log may hold before SQLite moves it into the main file. */
const LONG = 20 * KIB * KIB;
const OFF = 0;
const NORMAL = 1;

function place() {
  const dir = fs.mkdtempSync(path.join(tmpdir(), "perdure-test-"));
  const spares = new SpareFiles(path.join(dir, "spare"), templateBytes());
  onTestFinished(async () => {
    await spares.close();
    fs.rmSync(dir, { recursive: true, force: true });
  });
  return { file: path.join(dir, agentFileName(ID)), open: () => new DiskAgentFile(dir, ID, spares, 1e9) };
}

function write(file: DiskAgentFile, db: Database.Database, bytes = 1): void {
  db.prepare("INSERT INTO perdure_cell (key, value) VALUES (hex(randomblob(8)), hex(zeroblob(?)))").run(bytes);
  file.committed();
}

function carefulness(db: Database.Database): unknown {
  return db.pragma("synchronous", { simple: true });
}

function countSyncs() {
  const [ofLogs, ofFolders] = [vi.spyOn(fs, "fdatasync"), vi.spyOn(fs, "fsync")];
  onTestFinished(() => {
    ofLogs.mockRestore();
    ofFolders.mockRestore();
  });
  return () => [ofLogs.mock.calls.length, ofFolders.mock.calls.length];
}

test("the first commit of a life syncs nothing by itself; its sync covers the log and the log's name, those after it the log", async () => {
  const { open } = place();
  const counted = countSyncs();
  // The first life finds a new file, the second an old one: the log is new for both.
  for (const life of [0, 1]) {
    const file = open();
    const { db } = file.open();
    expect(carefulness(db)).toBe(OFF);
    const [logs = 0, folders = 0] = counted();
    write(file, db);
    expect(carefulness(db)).toBe(NORMAL);
    await file.sync();
    expect(counted(), `life ${life}`).toEqual([logs + 1, folders + 1]);
    write(file, db);
    await file.sync();
    expect(counted(), `life ${life}`).toEqual([logs + 2, folders + 1]);
    db.close();
    file.closed();
  }
});

test("a log is not moved into the main file before SQLite may sync it, however long its first commit is", () => {
  const { open, file: name } = place();
  const file = open();
  const { db } = file.open();
  const before = fs.statSync(name).size;
  db.prepare("INSERT INTO perdure_cell (key, value) VALUES ('long', hex(zeroblob(?)))").run(LONG / 2);
  expect(fs.statSync(name).size).toBe(before);
  file.committed();
  write(file, db);
  expect(fs.statSync(name).size).toBeGreaterThan(LONG);
  db.close();
  file.closed();
});

test("a log that a dead process has left is moved with care from the first commit on", () => {
  const { open, file: name } = place();
  const first = open();
  const { db } = first.open();
  write(first, db);
  const [main, log] = ["", "-wal"].map((suffix) => fs.readFileSync(name + suffix));
  db.close();
  first.closed();
  fs.writeFileSync(name, main ?? "");
  fs.writeFileSync(`${name}-wal`, log ?? "");
  const second = open();
  const { db: found } = second.open();
  expect(carefulness(found)).toBe(NORMAL);
  expect(found.prepare("SELECT count(*) FROM perdure_cell").pluck().get()).toBe(1);
  found.close();
  second.closed();
});
