import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { createHost } from "perdure/node";
import { type ManualClock, manualClock } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { databaseFile, withDatabase } from "../host/agent-files.ts";
import { tempDir } from "../host/open-host.ts";
import { setTimeout } from "node:timers/promises";
import { Clerk, Talker, world } from "./before/agents.ts";
import { WRITTEN_AT } from "./before/written-at.ts";

const HOUR = 3_600_000;

/** The directory that an earlier version left behind when it was killed. */
function unpacked(): string {
  const dir = tempDir();
  const packed = gunzipSync(readFileSync(join(import.meta.dirname, "before/directory.json.gz")));
  for (const [path, body] of Object.entries(JSON.parse(packed.toString()) as Record<string, string>)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), Buffer.from(body, "base64"));
  }
  return dir;
}

/** Waits in seconds of the clock: what was cut begins anew after a while. Agents are asked, so `until` is of no use. */
async function untilIt(clock: ManualClock, look: () => Promise<boolean>, what: string): Promise<void> {
  for (let at = 0; at < 2000; at++) {
    if (await look()) return;
    await clock.advance(at < 300 ? 1000 : 0);
    await setTimeout(5);
  }
  throw new Error(`Never happened: ${what}`);
}

test("a deadline that an earlier version stored in a table of its own still ends its question", async () => {
  const clock = manualClock(WRITTEN_AT + 60_000);
  const host = createHost({ agents: { Clerk, Talker }, dir: unpacked(), clock, log: () => {} });
  onTestFinished(() => host.stop());
  const asks = host.getAgentByName(Talker, "asks");
  await clock.advance(9 * HOUR);
  expect(await asks.states()).toEqual(["approval-responded", "approval-requested"]);
  await clock.advance(HOUR);
  await untilIt(clock, async () => (await asks.states()).includes("output-denied"), "the question is over");
  await untilIt(clock, async () => (await asks.texts()).at(-1) === "Said both.", "the approved call ran");
  expect(await asks.states()).toContain("output-available");
});

test("a directory that an earlier version wrote opens and goes on: rows at rest, and all that was cut", async () => {
  const clock = manualClock(WRITTEN_AT + 60_000);
  const problems: unknown[] = [];
  const log = (problem: unknown) => void problems.push(problem);
  const dir = unpacked();
  const host = createHost({ agents: { Clerk, Talker }, dir, clock, log });
  onTestFinished(() => host.stop());
  world.prompts.length = 0;
  world.ran.length = 0;
  const desk = host.getAgentByName(Clerk, "desk");

  // What was at rest.
  const { texts, seen: _, ...rest } = await desk.look();
  expect(rest).toEqual({
    state: { n: 7 },
    config: { color: "blue" },
    sessions: expect.arrayContaining(["Fork", "Other", "PINNED"]),
    compactions: ["summary"],
    approvals: ["pay-1"],
    submissions: ["completed"],
    files: ["a", 100_000],
    notes: 1,
    memory: "likes tea",
  });
  expect(texts.map((text) => text.slice(0, 9))).toEqual([
    ...["PINNED", "Said PINN", "1 The lig", "Said 1 Th", "2 The lig", "Said 2 Th", "3 The lig", "Said 3 Th"],
    ...["submitted", "Said subm", "pay", ""],
  ]);

  // What was under way: a method of the queue, a fiber, a child's run, three turns and what waited behind them.
  await untilIt(clock, async () => (await desk.look()).seen.length === 3, "the work that was under way");
  expect((await desk.look()).seen).toEqual(["queued", "report completed", "tidy"]);
  for (const name of ["cut", "tool"]) {
    const cut = host.getAgentByName(Clerk, name);
    await untilIt(clock, async () => (await cut.look()).texts.at(-1) === "Said waits.", "what waited is answered");
    expect((await cut.look()).submissions).toEqual(["completed"]);
  }
  expect(world.ran).toEqual(["work"]);
  const talker = host.getAgentByName(Talker, "cut");
  await untilIt(
    clock,
    async () => (await talker.texts()).at(-1)?.includes("three.") === true,
    "the cut stream goes on",
  );

  // Questions that were asked then are answered now, and run once each.
  expect(await desk.answerApproval("pay-1", true)).toBe(true);
  await untilIt(clock, async () => (await desk.look()).texts.at(-1) === "Said pay.", "the approved call ran");
  const prompt = world.prompts.findLast((text) => text.includes("pay done")) ?? "";
  expect(prompt).toContain("THE SUMMARY");
  expect(prompt).toContain("PINNED");
  expect(prompt).toContain("likes tea");
  expect(prompt).not.toContain("1 The lighthouse");
  const asks = host.getAgentByName(Talker, "asks");
  expect(await asks.states()).toEqual(["approval-responded", "approval-requested"]);
  await asks.yes("pay-b");
  await untilIt(clock, async () => (await asks.texts()).at(-1) === "Said both.", "both approved calls ran");
  expect(world.ran).toEqual(["work", "pay", "pay", "pay"]);

  // What fell due meanwhile.
  await clock.advance(2 * HOUR);
  await untilIt(clock, async () => (await desk.look()).seen.includes("scheduled"), "what was scheduled");
  await untilIt(clock, async () => (await desk.look()).seen.includes("again"), "what is due every hour");
  expect(problems).toEqual([]);

  // Tables that were never used are gone from its files, and the others have what they had.
  await host.stop();
  const tables = (file: string) =>
    withDatabase(file, (db) => db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all());
  const [deskTables, askTables] = [tables(databaseFile(dir, "desk")), tables(databaseFile(dir, "asks"))];
  expect(deskTables).toEqual(expect.arrayContaining(["perdure_schedule", "perdure_compaction", "perdure_file"]));
  expect(deskTables).not.toContain("perdure_inbound");
  expect(askTables).not.toContain("perdure_schedule");
});
