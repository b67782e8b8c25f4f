import { and, createCollection, eq } from "@tanstack/db";
import { createToolExecutionEffect, logCollectionOptions, openLocalLog, waitForToolResult } from "perdure/collections";
import type { ApprovalEvent } from "perdure/collections";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../../support/until.ts";
import { add, openCalls, openGenerations, pending, waiting } from "./calls.ts";

test("without a collection and without onComplete, results go to the collection that the query reads", async () => {
  const { calls, rows } = openCalls(openLocalLog());
  const told: string[] = [];
  const effect = createToolExecutionEffect({
    query: waiting(calls),
    tools: [add],
    implementations: { add: async ({ a, b }) => ({ sum: a + b }) },
    onExecuting: (row) => void told.push(row.id),
  });
  onTestFinished(() => effect.dispose());
  await rows.insert(pending("1"));
  expect(await waitForToolResult(calls, "1")).toEqual({ sum: 3 });
  expect(rows.get("1")?.status).toBe("completed");
  expect(told).toEqual(["1"]);
});

test("two executors that name no collection never both begin a call", async () => {
  const { calls, rows } = openCalls(openLocalLog());
  const begun: string[] = [];
  for (const name of ["a", "b"]) {
    const effect = createToolExecutionEffect({
      query: waiting(calls),
      tools: [add],
      implementations: { add: async ({ a, b }) => (begun.push(name), { sum: a + b }) },
    });
    onTestFinished(() => effect.dispose());
  }
  await rows.insert(pending("1"));
  await waitForToolResult(calls, "1");
  expect(begun).toHaveLength(1);
});

test("where only onComplete writes, a call that fails or is cancelled is still settled", async () => {
  const log = openLocalLog();
  const { calls, rows } = openCalls(log);
  const { generations, rows: answers } = openGenerations(log);
  const time = "2026-01-01T00:00:00.000Z";
  await answers.insert({ id: "g2", agentName: "x", model: "m", status: "cancelled", createdAt: time, updatedAt: time });
  const effect = createToolExecutionEffect({
    query: waiting(calls),
    tools: [add],
    generations,
    implementations: {
      add: async ({ a }) => {
        throw new Error(`no ${a}`);
      },
    },
    onComplete: () => {},
  });
  onTestFinished(() => effect.dispose());
  await rows.insertAll([pending("1"), pending("2", { generationId: "g2" })]);
  await expect(waitForToolResult(calls, "1")).rejects.toThrow("no 1");
  await until(() => rows.get("2")?.status === "cancelled");
});

test("a query that joins other rows to the calls needs no select: callbacks get both, the call is executed once", async () => {
  const log = openLocalLog();
  const { calls, rows } = openCalls(log);
  const events = createCollection(
    logCollectionOptions<ApprovalEvent>({ log, name: "approvals", getKey: (row) => row.id }),
  );
  const did: string[] = [];
  const effect = createToolExecutionEffect({
    query: (q) =>
      q
        .from({ tc: calls })
        .join({ ae: events }, ({ tc, ae }) => eq(tc.id, ae.toolCallId), "inner")
        .where(({ tc, ae }) => and(eq(tc.status, "pending"), eq(ae.action, "approved"))),
    tools: [add],
    approvals: "query",
    implementations: {
      add: async ({ a, b }, { row }) => (did.push(`${row.tc.id} by ${row.ae.actorId}`), { sum: a + b }),
    },
  });
  onTestFinished(() => effect.dispose());
  await rows.insertAll([pending("1", { needsApproval: true }), pending("2", { needsApproval: true })]);
  const approve = (id: string) =>
    events.insert({ id, toolCallId: "2", action: "approved", actorId: "ann", timestamp: "now" });
  await approve("e1").isPersisted.promise;
  expect(await waitForToolResult(calls, "2")).toEqual({ sum: 3 });
  await approve("e2").isPersisted.promise;
  await effect.idle();
  expect(did).toEqual(["2 by ann"]);
  expect(rows.get("1")?.status).toBe("pending");
});
