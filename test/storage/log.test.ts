// SQLite's log of an agent: moved into the main file beside the commits, and never for long.
import { statSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Agent } from "perdure";
import { createHost } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { databaseFile } from "../host/agent-files.ts";
import { tempDir } from "../host/open-host.ts";
import { until } from "../support/until.ts";

const MEGABYTE = 1_000_000;

class Notes extends Agent {
  override onStart(): void {
    this.sql`CREATE TABLE IF NOT EXISTS note (text TEXT)`;
  }
  /** Wakes it: its file is made. */
  begin(): void {}
  /** @returns how large the file is right after the commit. */
  add(megabytes: number, file: string): number {
    this.sql`INSERT INTO note VALUES (${"x".repeat(megabytes * MEGABYTE)})`;
    return statSync(file).size;
  }
}

async function open() {
  const dir = tempDir();
  const host = createHost({ agents: { Notes }, dir });
  onTestFinished(() => host.stop());
  const agent = host.getAgentByName(Notes, "one");
  await agent.begin();
  const file = databaseFile(dir, "one");
  const size = (suffix = "") => statSync(file + suffix).size;
  return { add: (megabytes: number) => agent.add(megabytes, file), size };
}

test("what one commit writes is moved into the main file after it, not in it", async () => {
  const { add, size } = await open();
  expect(await add(8)).toBeLessThan(MEGABYTE);
  await until(() => size() > 8 * MEGABYTE, "the log was moved");
});

test("the log does not grow with what is written", async () => {
  const { add, size } = await open();
  for (let n = 0; n < 60; n++) {
    await add(1);
    await pause(0);
  }
  expect(size("-wal")).toBeLessThan(12 * MEGABYTE);
  expect(size()).toBeGreaterThan(40 * MEGABYTE);
});
