import { createCollection } from "@tanstack/db";
import {
  createApprovals,
  createGenerationEffect,
  getApprovalStatus,
  logCollectionOptions,
  openLocalLog,
  rowsOf,
} from "perdure/collections";
import { newJob, runQueueWorker } from "perdure/collections/worker";
import type { ApprovalEvent, ToolCallRecord } from "perdure/collections";
import type { QueueJob } from "perdure/collections/worker";
import { expect, test } from "vitest";
import { countReads } from "./counted-reads.ts";
import { desk, is, pending, until } from "./generation/asks.ts";
import { hardOfHearing } from "./claims/bad-lines.ts";

// What is looked at again and again must not cost more with every row that was ever written: here nobody may read a
// whole table once it is known.

test("a queue's worker reads the jobs once, however many come and however often they beat", async () => {
  const { log, reads } = countReads(openLocalLog(), "jobs");
  const collection = createCollection(
    logCollectionOptions<QueueJob<string>>({ log, name: "jobs", getKey: (job) => job.id }),
  );
  const rows = rowsOf(collection);
  await collection.preload();
  await rows.insertAll(["a", "b", "c"].map((id) => ({ ...newJob("old", id), status: "done" as const })));
  const before = reads();
  const done: string[] = [];
  const worker = runQueueWorker({
    collection,
    run: async (session, job) => {
      await session.heartbeat();
      done.push(job.id);
      if (job.id === "second") await rows.insert(newJob("more", "third"));
    },
  });
  await rows.insertAll([newJob("new", "first"), newJob("new", "second")]);
  await worker.idle();
  expect(done).toEqual(["first", "second", "third"]);
  expect(reads() - before).toBe(1);
  await worker.stop();
});

test("jobs that are put back keep their place before later ones", async () => {
  const log = openLocalLog();
  const collection = createCollection(
    logCollectionOptions<QueueJob<string>>({ log, name: "jobs", getKey: (job) => job.id }),
  );
  const rows = rowsOf(collection);
  await rows.insertAll(["a", "b", "c"].map((id) => newJob("", id)));
  const begun: string[] = [];
  const worker = runQueueWorker({
    collection,
    onError: () => {},
    run: async (_session, job) => {
      begun.push(job.id);
      if (begun.length === 1) throw new Error("once");
    },
  });
  await worker.idle();
  expect(begun).toEqual(["a", "a", "b", "c"]);
  await worker.stop();
});

test("a suspended answer looks at its own calls, and not at those of all others", async () => {
  const { log, reads } = countReads(openLocalLog(), "toolCalls");
  const here = desk(log);
  const calls = rowsOf(here.toolCalls);
  const call = (id: string, generationId: string): ToolCallRecord => {
    const createdAt = new Date(0).toISOString();
    return { id, generationId, name: "search", args: {}, status: "pending", createdAt, updatedAt: createdAt };
  };
  await here.toolCalls.preload();
  await calls.insertAll([call("g1:a", "g1"), call("g1:b", "g1"), call("g2:a", "g2")]);
  await here.rows.insert({ id: "one", prompt: "hi", status: "suspended", generationId: "g1" });
  await here.rows.insert({ id: "two", prompt: "hi", status: "suspended", generationId: "g2" });
  const before = reads();
  const begun: string[] = [];
  const effect = createGenerationEffect({
    ...pending(here, ["pending", "suspended"]),
    toolCalls: { collection: here.toolCalls },
    generate: async (row) => (begun.push(row.id), "answered"),
  });
  await effect.ready;
  for (let n = 0; n < 20; n++) await calls.insert({ ...call(`old:${n}`, "old"), status: "completed" });
  const finish = (id: string) => calls.update(id, (row) => void (row.status = "completed"));
  await finish("g1:a");
  await effect.idle();
  expect(begun).toEqual([]);
  await finish("g1:b");
  await until(here, "one", is("completed"));
  // Cancelling finds the open calls of the answer, too.
  await here.rows.update("two", (row) => void (row.status = "cancelled"));
  await expect.poll(() => calls.get("g2:a")?.status).toBe("cancelled");
  expect(begun).toEqual(["one"]);
  expect(reads() - before).toBe(1);
  await effect.dispose();
});

/** Approvals on events that nobody else writes. */
function approvals(log = openLocalLog()) {
  const events = createCollection(
    logCollectionOptions<ApprovalEvent>({ log, name: "events", getKey: (row) => row.id }),
  );
  return { events, rows: rowsOf(events), approvals: createApprovals({ events }) };
}

test("approvals read the trail once, however many events come and however many wait", async () => {
  const { log, reads } = countReads(openLocalLog(), "events");
  const { events, approvals: asked } = approvals(log);
  await events.preload();
  const before = reads();
  const ids = Array.from({ length: 10 }, (_, n) => `call${n}`);
  const waits = ids.map((id) => asked.decided(id));
  for (const id of ids) await asked.request(id, { actorId: "agent" });
  expect(asked.pending().map(({ toolCallId }) => toolCallId)).toEqual(ids);
  for (const [n, id] of ids.entries()) {
    await (n % 2 === 0 ? asked.approve(id, { actorId: "ann" }) : asked.deny(id, { actorId: "ann" }));
    expect(asked.pending()).toHaveLength(ids.length - n - 1);
  }
  expect(await Promise.all(waits)).toEqual(ids.map((_, n) => (n % 2 === 0 ? "approved" : "denied")));
  expect(reads() - before).toBe(0);
});

test("what approvals have kept current is what reading all events would give", async () => {
  const deaf = hardOfHearing(openLocalLog(), "events");
  const { rows, approvals: asked } = approvals(deaf.log);
  await asked.ready;
  const ids = ["a", "b", "c"];
  const check = () => {
    // In the order of the log, whose places these rows do not show.
    const all = rows.all().map((event, seq) => ({ ...event, seq }));
    for (const id of ids) expect(asked.status(id)).toBe(getApprovalStatus(all, id));
    const latest = ids.flatMap(
      (id) => all.findLast((one) => one.toolCallId === id && one.action === "requested") ?? [],
    );
    const open = latest.filter(({ toolCallId }) => asked.status(toolCallId) === "pending");
    const inOrder = open.toSorted((one, other) => one.seq - other.seq).map(({ id }) => id);
    expect(asked.pending().map(({ id }) => id)).toEqual(inOrder);
  };
  const by = { actorId: "ann" };
  for (const id of ["b", "a", "c"]) await asked.request(id, by);
  check();
  await asked.approve("b", by);
  await asked.request("b", { ...by, again: true });
  check();
  await rows.delete("a:requested:1");
  check();
  // What comes next comes as all rows there are.
  deaf.stop();
  await asked.deny("c", by);
  check();
  await asked.request("a", by);
  check();
});

test("a wait goes on when its approvals are disposed, and what they are asked then is still true", async () => {
  const { events, approvals: asked } = approvals();
  const other = createApprovals({ events });
  await asked.request("a", { actorId: "agent" });
  const wait = asked.decided("a");
  await asked.ready;
  asked.dispose();
  await other.approve("a", { actorId: "ann" });
  expect(await wait).toBe("approved");
  await other.request("b", { actorId: "agent" });
  expect(asked.status("b")).toBe("pending");
  expect(asked.pending()).toHaveLength(1);
  await asked.deny("b", { actorId: "bob" });
  expect(asked.status("b")).toBe("denied");
});
