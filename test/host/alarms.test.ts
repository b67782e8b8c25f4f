import { join } from "node:path";
import { Agent } from "perdure";
import { memoryStorage, subscribe } from "perdure/node";
import { killPrograms, manualClock, startProgram } from "perdure/testing";
import type { ScheduleRun } from "perdure/work";
import { afterEach, expect, onTestFinished, test } from "vitest";
import { withDatabase } from "./agent-files.ts";
import { eventually, openHost, quiet, tempDir } from "./open-host.ts";

const DAY_MS = 86_400_000;
const crashing = new URL("./alarm-program.ts", import.meta.url);

let rings: string[] = [];

class Alarm extends Agent {
  async in(seconds: number): Promise<number> {
    return (await this.schedule(seconds, "ring", this.name)).at;
  }
  async every(seconds: number): Promise<void> {
    await this.scheduleEvery(seconds, "ring", this.name);
  }
  ring(name: string, _run: ScheduleRun): void {
    rings.push(name);
  }
  hello(): void {}
}

interface IndexRow {
  id: string;
  at: number | null;
  awake: number;
}

/** What the host database of a stopped host says. */
function indexOf(dir: string): IndexRow[] {
  return withDatabase(join(dir, "host.db"), (db) => db.prepare<[], IndexRow>("SELECT * FROM agent ORDER BY id").all());
}

afterEach(killPrograms);

test("the index holds the time of a sleeping agent, and the next host rings at that time", async () => {
  rings = [];
  const dir = tempDir();
  const clock = manualClock();
  const host = await openHost({ agents: { Alarm }, dir, clock });
  const at = await host.getAgentByName(Alarm, "a").in(3600);
  await host.getAgentByName(Alarm, "b").hello();
  await host.stop();
  expect(indexOf(dir)).toEqual([{ id: "Alarm/a", at, awake: 0 }]);

  const next = await openHost({ agents: { Alarm }, dir, clock });
  await clock.advance(3_599_000);
  expect([rings, next.status().live]).toEqual([[], 0]);
  await clock.advance(1000);
  await eventually(() => rings.length > 0, "it rings");
  expect(rings).toEqual(["a"]);
});

test("what fell due while no host ran is done right after the start, with nobody connected, once", async () => {
  rings = [];
  const dir = tempDir();
  const clock = manualClock();
  const host = await openHost({ agents: { Alarm }, dir, clock });
  for (const name of ["a", "b", "c"]) await host.getAgentByName(Alarm, name).in(10);
  await host.stop();
  await clock.advance(DAY_MS);
  await openHost({ agents: { Alarm }, dir, clock });
  await clock.advance(0);
  await eventually(() => rings.length === 3, "all ring");
  await clock.advance(DAY_MS);
  expect(rings.sort()).toEqual(["a", "b", "c"]);
});

test("an alarm beyond what a timer can hold rings on its day, awake or asleep", async () => {
  for (const idleMs of [DAY_MS, 400 * DAY_MS]) {
    rings = [];
    const clock = manualClock();
    const host = await openHost({ agents: { Alarm }, storage: memoryStorage(), clock, idleMs });
    await host.getAgentByName(Alarm, "a").in(60 * 86_400);
    await clock.advance(59 * DAY_MS);
    expect(rings).toEqual([]);
    await clock.advance(DAY_MS);
    await eventually(() => rings.length > 0, "it rings");
    expect(rings).toEqual(["a"]);
  }
});

test("a recurring alarm goes on through eviction and restart", async () => {
  rings = [];
  const dir = tempDir();
  const clock = manualClock();
  const host = await openHost({ agents: { Alarm }, dir, clock, idleMs: 1000 });
  await host.getAgentByName(Alarm, "a").every(60);
  for (let i = 1; i <= 3; i++) {
    await clock.advance(60_000);
    await eventually(() => rings.length === i, `ring ${i}`);
  }
  await clock.advance(10_000);
  expect(host.status().live).toBe(0);
  await host.stop();
  await openHost({ agents: { Alarm }, dir, clock, idleMs: 1000 });
  await clock.advance(60_000);
  await eventually(() => rings.length === 4, "ring 4");
});

test("an agent that cannot start when it is due is tried again, and rings late rather than never", async () => {
  rings = [];
  let broken = false;
  let tries = 0;
  class Shaky extends Alarm {
    override onError(): void {}
    override onStart(): void {
      if (!broken) return;
      tries++;
      // A start that writes before it fails takes the time out of the index.
      this.sql`CREATE TABLE IF NOT EXISTS t (x)`;
      this.sql`INSERT INTO t VALUES (1)`;
      throw new Error("not now");
    }
  }
  const failures: string[] = [];
  onTestFinished(subscribe("agent:failed", ({ payload }) => failures.push(payload.stage)));
  const clock = manualClock();
  const host = await openHost({ agents: { Shaky }, storage: memoryStorage(), clock, idleMs: 60_000 });
  await host.getAgentByName(Shaky, "a").in(3600);
  await clock.advance(150_000);
  expect(host.status().live).toBe(0);
  broken = true;
  // Woken by a caller first, long before it is due.
  await expect(host.getAgentByName(Shaky, "a").hello()).rejects.toThrow("not now");
  await clock.advance(3_600_000);
  expect(tries).toBeGreaterThan(3);
  expect(failures).toContain("wake");
  expect(rings).toEqual([]);
  broken = false;
  await clock.advance(300_000);
  await eventually(() => rings.length > 0, "it rings");
  await clock.advance(DAY_MS);
  expect(rings).toEqual(["a"]);
});

test("retries of a failing agent never make a second object beside the one that a caller uses", async () => {
  let broken = true;
  let alive = 0;
  class Once extends Agent {
    override onError(): void {}
    override onStart(): void {
      this.sql`CREATE TABLE IF NOT EXISTS t (x)`;
      if (broken) throw new Error("not now");
      alive++;
    }
    hold(): Promise<void> {
      return new Promise((resolve) => (release = resolve));
    }
  }
  let release: (() => void) | undefined;
  const clock = manualClock();
  const host = await openHost({ agents: { Once }, storage: memoryStorage(), clock, idleMs: 200 });
  await expect(host.getAgentByName(Once, "a").hold()).rejects.toThrow("not now");
  await clock.advance(500);
  broken = false;
  const held = host.getAgentByName(Once, "a").hold();
  await clock.advance(600);
  await quiet();
  expect(alive).toBe(1);
  release?.();
  await held;
});

test("kill -9 while asleep, awake or running: everything rings after the restart, with nobody connected", async () => {
  const dir = tempDir();
  const first = startProgram(crashing, { dir });
  await first.waitFor("running");
  expect((await first.kill()).signal).toBe("SIGKILL");
  const second = startProgram(crashing, { dir, env: { QUIET: "1" } });
  for (const name of ["asleep", "awake", "running"]) {
    await second.waitFor((fact) => fact.type === "rang" && fact.name === name);
  }
  const before = first.facts.filter(({ type }) => type === "rang").map(({ name }) => name);
  expect(before).toEqual([]);
});
