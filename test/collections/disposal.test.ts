import { toolDefinition } from "@tanstack/ai";
import { createCollection, eq } from "@tanstack/db";
import {
  agentCollections,
  createAgent,
  createApprovals,
  createClaims,
  createGenerationEffect,
  createToolExecutionEffect,
  durableAgent,
  logCollectionOptions,
  openLocalLog,
} from "perdure/collections";
import { runQueueWorker } from "perdure/collections/worker";
import type { QueueJob } from "perdure/collections/worker";
import { scriptedText } from "perdure/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { backends } from "./backends.ts";
import type { TestPlace } from "./backends.ts";

const note = toolDefinition({ name: "note", description: "Takes a note." });

test("what is disposed or stopped is so at the end of its block, last made first", async () => {
  const log = openLocalLog();
  const { toolCalls, generations, claims: rows, approvals: events } = agentCollections(log);
  const jobs = createCollection(logCollectionOptions<QueueJob>({ log, name: "jobs", getKey: (job) => job.id }));
  const left = await (async () => {
    await using executor = createToolExecutionEffect({
      query: (q) => q.from({ c: toolCalls }).where(({ c }) => eq(c.status, "pending")),
      tools: [note],
      implementations: { note: () => "noted" },
    });
    await using effect = createGenerationEffect({
      query: (q) => q.from({ g: generations }).where(({ g }) => eq(g.status, "pending")),
      generate: async () => "x",
    });
    await using agent = createAgent(
      durableAgent({ name: "a", instructions: "", adapter: scriptedText([]), log: openLocalLog() }),
    );
    await using claims = createClaims({ collection: rows });
    await using hold = claims.hold("work", { onGained: () => {} });
    await using worker = runQueueWorker({ collection: jobs, run: async () => {} });
    using approvals = createApprovals({ events });
    await Promise.all([executor.ready, effect.ready, agent.ready, approvals.ready, worker.idle()]);
    expect([executor.disposed, effect.disposed, agent.state]).toEqual([false, false, "idle"]);
    return { executor, effect, agent, claims, hold };
  })();
  expect([left.executor.disposed, left.effect.disposed, left.agent.state]).toEqual([true, true, "disposed"]);
  expect(left.hold.claim).toBeUndefined();
  await expect(left.claims.acquire("work")).rejects.toMatchObject({ code: "bad_state" });
});

describe.each(backends)("a log of $name", (backend) => {
  let place: TestPlace;
  beforeAll(async () => {
    place = await backend.start();
  });
  afterAll(() => place.stop());

  test("is closed at the end of its block", async () => {
    const left = await (async () => {
      await using log = await place.open();
      await log.write({ changes: [{ table: "t", key: "a", operation: "upsert", value: { id: "a" } }] });
      return log;
    })();
    const late = left.write({ changes: [{ table: "t", key: "b", operation: "upsert", value: { id: "b" } }] });
    await expect(late).rejects.toMatchObject({ code: "disconnected" });
  });
});
