import { createCollection, localOnlyCollectionOptions } from "@tanstack/db";
import {
  createClaims,
  getLastPersistedChunkIndex,
  getPartialContent,
  logCollectionOptions,
  openLocalLog,
  recoverOrphanedOperations,
  resumeToolChain,
  rowsOf,
} from "perdure/collections";
import { classifyGeneration, classifyToolCall } from "perdure/collections/answer";
import { toolClaimId } from "perdure/collections/worker";
import type { ChunkRecord, ClaimRecord, GenerationRecord, RowLog, ToolCallRecord } from "perdure/collections";
import { manualClock } from "perdure/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { backends } from "../backends.ts";
import type { TestPlace } from "../backends.ts";
import { until } from "../../support/until.ts";

const NOW = Date.parse("2026-01-01T12:00:00Z");
const LONG_AGO = "2026-01-01T11:00:00.000Z";
const JUST_NOW = "2026-01-01T11:59:00.000Z";

const call = (id: string, more: Partial<ToolCallRecord> = {}): ToolCallRecord => ({
  ...{ id, generationId: "g", name: "tool", args: {}, status: "executing", createdAt: LONG_AGO, updatedAt: LONG_AGO },
  ...more,
});
const answer = (id: string, more: Partial<GenerationRecord> = {}): GenerationRecord => ({
  ...{ id, agentName: "x", model: "m", status: "generating", createdAt: LONG_AGO, updatedAt: LONG_AGO },
  ...more,
});

describe.each(backends)("recovery: $name", ({ start }) => {
  let place: TestPlace;
  let one: RowLog;
  let other: RowLog;
  beforeAll(async () => {
    place = await start();
    one = await place.open();
    other = await place.open();
  });
  afterAll(() => place.stop());

  let count = 0;
  /** The same rows in two processes. */
  const processes = () => {
    const prefix = `r${++count}-`;
    const clock = manualClock();
    const both = [one, other].map((log, at) => {
      const keyed = { log, getKey: (row: { id: string }) => row.id };
      const toolCalls = createCollection(
        logCollectionOptions<ToolCallRecord>({ ...keyed, name: `${prefix}toolCalls` }),
      );
      const generations = createCollection(
        logCollectionOptions<GenerationRecord>({ ...keyed, name: `${prefix}generations` }),
      );
      const collection = createCollection(logCollectionOptions<ClaimRecord>({ ...keyed, name: `${prefix}claims` }));
      const claims = createClaims({ collection, owner: `worker ${at}`, clock, leaseMs: 30_000 });
      const calls = rowsOf(toolCalls);
      const answers = rowsOf(generations);
      return { toolCalls, generations, claims, calls, answers };
    });
    return { here: both[0]!, there: both[1]!, clock };
  };

  test("requirement: Recovery: what a crash has left is found at the start and put back, by how often it was tried", async () => {
    const { here } = processes();
    await here.calls.insertAll([
      call("left"),
      call("left twice", { attempt: 2 }),
      call("runs", { updatedAt: JUST_NOW }),
      call("waits", { status: "pending" }),
      call("done", { status: "completed" }),
    ]);
    await here.answers.insertAll([
      answer("left"),
      answer("runs", { updatedAt: JUST_NOW }),
      answer("on hold", { status: "suspended" }),
    ]);
    const { toolCalls, generations } = here;
    const report = await recoverOrphanedOperations({ toolCalls, generations, now: () => NOW });
    expect(report.toolCalls.map(({ id, to, attempt }) => `${id}: ${to}, ${attempt}`)).toEqual([
      "left: pending, 1",
      "left twice: failed, 3",
    ]);
    expect(report.generations.map(({ id, to }) => `${id}: ${to}`)).toEqual(["left: failed"]);
    expect(here.calls.all().map(({ id, status }) => `${id}: ${status}`)).toEqual([
      "left: pending",
      "left twice: failed",
      "runs: executing",
      "waits: pending",
      "done: completed",
    ]);
    expect(here.calls.get("left twice")?.error).toContain("Left behind");
    expect(here.answers.get("left")).toMatchObject({ status: "failed", attempt: 1 });
    expect(here.answers.get("on hold")?.status).toBe("suspended");
    // A second look finds nothing: what was put back is not left.
    expect(await recoverOrphanedOperations({ toolCalls, generations, now: () => NOW })).toEqual({
      ...{ generations: [], toolCalls: [] },
    });
  });

  test("answers are tried again if the policy says so, as often as it may be", async () => {
    const { here } = processes();
    await here.answers.insertAll([answer("first"), answer("third", { attempt: 3 }), answer("never")]);
    const report = await recoverOrphanedOperations({
      generations: here.generations,
      generationPolicy: (row) => (row.id === "never" ? "fail" : "retry"),
      now: () => NOW,
    });
    expect(report.generations.map(({ id, to, attempt }) => `${id}: ${to}, ${attempt}`)).toEqual([
      "first: pending, 2",
      "third: failed, 3",
      "never: failed, 1",
    ]);
  });

  test("of two processes that recover at once each orphan is recovered, and counted, by one", async () => {
    const { here, there } = processes();
    const ids = Array.from({ length: 30 }, (_, n) => `call ${n}`);
    await here.calls.insertAll(ids.map((id) => call(id)));
    await until(() => there.calls.all().length === ids.length);
    const recover = ({ toolCalls }: typeof here) => recoverOrphanedOperations({ toolCalls, now: () => NOW });
    const reports = await Promise.all([recover(here), recover(there)]);
    expect(reports.flatMap(({ toolCalls }) => toolCalls.map(({ id }) => id)).toSorted()).toEqual(ids.toSorted());
    expect(new Set(here.calls.all().map(({ attempt }) => attempt))).toEqual(new Set([1]));
  });

  test("with claims no clock is asked: a slow worker that lives is left alone, and one that is gone is not", async () => {
    const { here, there, clock } = processes();
    await here.calls.insertAll([call("held"), call("free"), call("given up")]);
    const held = await here.claims.acquire(toolClaimId("held"));
    const bad = await here.claims.acquire(toolClaimId("given up"));
    await bad.claim?.fail("poison", { retry: false });
    await until(() => there.claims.inspect(toolClaimId("given up")).state === "dead");
    const recover = ({ toolCalls, claims }: typeof here) =>
      recoverOrphanedOperations({ toolCalls, claims, timeoutMs: 0 });
    const reports = await Promise.all([recover(here), recover(there)]);
    const done = reports.flatMap(({ toolCalls }) => toolCalls.map(({ id, to }) => `${id}: ${to}`));
    expect(done.toSorted()).toEqual(["free: pending", "given up: failed"]);
    expect(here.calls.get("held")?.status).toBe("executing");
    // Another worker takes it, and is stopped in the middle.
    await held.claim?.release();
    await until(() => there.claims.inspect(toolClaimId("held")).state === "free");
    const again = await there.claims.acquire(toolClaimId("held"));
    expect(again.claim).toBeDefined();
    await until(() => here.claims.inspect(toolClaimId("held")).owner === "worker 1");
    await there.claims.dispose();
    await until(() => here.claims.inspect(toolClaimId("held")).state === "free");
    expect((await recover(here)).toolCalls).toMatchObject([{ id: "held", to: "pending", attempt: 1 }]);
    expect(here.claims.inspect(toolClaimId("held")).state).toBe("free");
    expect(clock.pending()).toBe(0);
  });

  test("an expired claim is taken over for the recovery, so that its late worker cannot write", async () => {
    const { here, there, clock } = processes();
    await here.calls.insertAll([call("slow")]);
    const keyed = { log: one, getKey: (row: { id: string }) => row.id };
    const collection = createCollection(logCollectionOptions<ClaimRecord>({ ...keyed, name: `r${count}-claims` }));
    // Its time stands still: it never beats.
    const frozen = createClaims({ collection, owner: "frozen", clock: manualClock(), leaseMs: 30_000 });
    const { claim } = await frozen.acquire(toolClaimId("slow"));
    await until(() => there.claims.inspect(toolClaimId("slow")).state === "held");
    await until(() => there.calls.get("slow") !== undefined);
    const { toolCalls, claims } = there;
    expect((await recoverOrphanedOperations({ toolCalls, claims })).toolCalls).toEqual([]);
    await clock.advance(30_000);
    expect((await recoverOrphanedOperations({ toolCalls, claims })).toolCalls).toMatchObject([
      { id: "slow", to: "pending" },
    ]);
    const late = here.calls.update("slow", (row) => void (row.status = "completed"), { when: [claim!.condition()] });
    expect(await late).toBe(false);
    // The recovery was no try of the work.
    expect(there.claims.inspect(toolClaimId("slow"))).toMatchObject({ state: "free", attempt: 1 });
    expect(there.calls.get("slow")?.status).toBe("pending");
  });

  test("an answer of an earlier runner is an orphan as soon as another runner is there", async () => {
    const { here, there } = processes();
    const before = await here.claims.acquire("runner:x");
    await here.answers.insert(answer("a", { runner: "runner:x", fence: before.claim!.fence }));
    const { generations, claims } = here;
    expect((await recoverOrphanedOperations({ generations, claims })).generations).toEqual([]);
    await before.claim?.release();
    await until(() => there.claims.inspect("runner:x").state === "free");
    const next = await there.claims.acquire("runner:x");
    await until(() => here.claims.inspect("runner:x").owner === "worker 1");
    await there.answers.insert(answer("b", { runner: "runner:x", fence: next.claim!.fence }));
    await until(() => here.answers.all().length === 2);
    expect((await recoverOrphanedOperations({ generations, claims })).generations).toMatchObject([{ id: "a" }]);
    expect(here.answers.get("b")?.status).toBe("generating");
  });

  test("a chain of tools goes on with the results that are there, by one of those who try", async () => {
    const { here, there } = processes();
    await here.answers.insertAll([
      answer("g", { status: "failed", error: "crash" }),
      answer("plain", { status: "failed" }),
    ]);
    await here.calls.insertAll([
      call("1", { status: "completed", result: 1 }),
      call("2", { status: "pending" }),
      call("3", { status: "failed" }),
      call("else", { generationId: "h" }),
    ]);
    await until(() => there.answers.all().length === 2 && there.calls.all().length === 4);
    const outcomes = await Promise.all([resumeToolChain("g", here), resumeToolChain("g", there)]);
    expect(outcomes.map(({ resumed }) => resumed).toSorted()).toEqual([false, true]);
    expect(outcomes[0]).toMatchObject({ completed: ["1"], open: ["2", "3"] });
    expect(here.answers.get("g")).toMatchObject({ status: "pending", resumeFromToolIndex: 1 });
    expect(here.answers.get("g")).not.toHaveProperty("error");
    expect(await resumeToolChain("plain", here)).toEqual({ resumed: false, completed: [], open: [] });
    expect(await resumeToolChain("nowhere", here)).toMatchObject({ resumed: false });
  });
});

test("what was stored of an answer can be shown, as far as nothing is missing", async () => {
  const log = openLocalLog();
  const chunks = createCollection(logCollectionOptions<ChunkRecord>({ log, name: "chunks", getKey: (row) => row.id }));
  const rows = rowsOf(chunks);
  const chunk = (index: number, content: string, type: ChunkRecord["type"] = "text") => ({
    ...{ id: `g:${index}`, generationId: "g", index, type, content },
  });
  expect(getLastPersistedChunkIndex(chunks, "g")).toBe(-1);
  expect(getPartialContent(chunks, "g")).toBe("");
  await rows.insertAll([chunk(2, "lo"), chunk(0, "Hel"), chunk(1, "hm", "thinking"), chunk(4, "!")]);
  await rows.insert({ ...chunk(0, "other"), id: "h:0", generationId: "h" });
  expect(getLastPersistedChunkIndex(chunks, "g")).toBe(4);
  expect(getPartialContent(chunks, "g")).toBe("Hello");
});

test("the table of states", () => {
  const generation = (status: string, known = {}) => Object.values(classifyGeneration({ status }, known)).join(", ");
  expect(generation("pending")).toBe("yes, pick-up");
  expect(generation("generating")).toBe("no, leave");
  expect(generation("generating", { orphaned: true })).toBe("maybe, retry-or-fail");
  expect(generation("suspended")).toBe("yes, await-tools");
  expect(generation("failed", { chunks: 3 })).toBe("no, show-partial");
  expect(generation("failed")).toBe("no, none");
  expect(generation("completed", { chunks: 3 })).toBe("no, none");
  const tool = (status: string, known = {}) => Object.values(classifyToolCall({ status }, known)).join(", ");
  expect(tool("pending")).toBe("yes, pick-up");
  expect(tool("executing")).toBe("no, leave");
  expect(tool("executing", { orphaned: true })).toBe("maybe, retry-or-fail");
  expect(tool("completed")).toBe("no, none");
});

test("claims of another log judge nothing; without claims a collection of one process will do", async () => {
  const log = openLocalLog();
  const claims = createClaims({
    collection: createCollection(logCollectionOptions<ClaimRecord>({ log, name: "claims", getKey: (row) => row.id })),
  });
  const toolCalls = createCollection(localOnlyCollectionOptions<ToolCallRecord, string>({ getKey: (row) => row.id }));
  await rowsOf(toolCalls).insert(call("a"));
  await expect(recoverOrphanedOperations({ toolCalls, claims })).rejects.toMatchObject({ code: "bad_config" });
  expect((await recoverOrphanedOperations({ toolCalls, now: () => NOW })).toolCalls).toMatchObject([{ id: "a" }]);
  expect(toolCalls.get("a")?.status).toBe("pending");
});
