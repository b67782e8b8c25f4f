import { createCollection } from "@tanstack/db";
import { PerdureError } from "perdure";
import { logCollectionOptions, openLocalLog, rowsOf, runWithLifecycle } from "perdure/collections";
import { newJob, runQueueWorker } from "perdure/collections/worker";
import type { RunnerLifecycleAdapter, RunnerSession } from "perdure/collections";
import type { QueueJob } from "perdure/collections/worker";
import { expect, test } from "vitest";
import { aborted } from "./desk.ts";
import { until } from "../../support/until.ts";

/** An adapter that keeps what it was told. */
function told(more: Partial<RunnerLifecycleAdapter<string>> = {}) {
  const calls: string[] = [];
  const adapter: RunnerLifecycleAdapter<string> = {
    claimWake: async () => (calls.push("claim"), { leaseMs: 30_000, heartbeatIntervalMs: 5 }),
    heartbeat: async () => void calls.push("beat"),
    checkpoint: async () => void calls.push("checkpoint"),
    complete: async (_state, { done }) => void calls.push(`complete ${done}`),
    fail: async (_state, error) => void calls.push(`fail ${error.message}`),
    ...more,
  };
  return { adapter, calls };
}
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => "ok",
    (error: PerdureError) => error.code,
  );

test("a wake that is over takes nothing more, and is ended once", async () => {
  const { adapter, calls } = told();
  const codes = await runWithLifecycle("w", adapter, async (session) => {
    const ends = Promise.all([codeOf(session.complete({ done: true })), codeOf(session.complete({ done: false }))]);
    const late = [codeOf(session.checkpoint([{ source: "s", cursor: "1" }])), codeOf(session.heartbeat())];
    return [...(await ends), ...(await Promise.all(late)), await codeOf(session.fail(new Error("x")))];
  });
  expect(codes).toEqual(["ok", "bad_state", "bad_state", "bad_state", "bad_state"]);
  expect(calls.filter((call) => call !== "beat")).toEqual(["claim", "complete true"]);
});

test("told to stop before it starts, it claims nothing; told so while it claims, it gives back", async () => {
  const before = told();
  const run = (session: RunnerSession<string>) => session.complete({ done: true });
  await expect(runWithLifecycle("w", before.adapter, run, { signal: AbortSignal.abort() })).rejects.toThrow();
  expect(before.calls).toEqual([]);
  const stop = new AbortController();
  const during = told({ claimWake: async () => (stop.abort(), {}) });
  await expect(runWithLifecycle("w", during.adapter, run, { signal: stop.signal })).rejects.toThrow();
  expect(during.calls).toEqual(["complete false"]);
});

test("a heartbeat that throws at once, once, costs nothing", async () => {
  let beats = 0;
  const { adapter, calls } = told({
    heartbeat: () => {
      if (++beats === 1) throw new Error("no");
      return Promise.resolve();
    },
  });
  await runWithLifecycle("w", adapter, async (session) => {
    await until(() => beats > 2);
    await session.complete({ done: true });
  });
  expect(calls).toEqual(["claim", "complete true"]);
});

const jobs = (log = openLocalLog()) =>
  createCollection(logCollectionOptions<QueueJob<string>>({ log, name: "jobs", getKey: (job) => job.id }));

test("a queue with poison in it: the good jobs are done, the bad ones failed", async () => {
  const log = openLocalLog();
  const collection = jobs(log);
  const rows = rowsOf(collection);
  const odd = (id: string, value: object) =>
    log.write({ changes: [{ table: "jobs", key: id, operation: "insert", value: { id, ...value } }] });
  await odd("bare", { status: "queued" });
  await odd("text", { status: "queued", attempts: "x", fence: "y", payload: "fine" });
  await odd("dead", { status: "running", attempts: 3, fence: 3, beat: 0, leaseMs: 1, payload: "fine" });
  for (const text of ["throws", "fine", "stuck"]) await rows.insert(newJob(text, text));
  const worker = runQueueWorker({
    collection,
    leaseMs: 30_000,
    concurrency: 2,
    run: async (session, { payload }) => {
      if (payload === "throws") throw new Error("poison");
      if (payload === "stuck") await aborted(session.signal);
    },
    onError: () => {},
  });
  await until(() => rows.get("fine")?.status === "done" && rows.get("throws")?.status === "failed");
  await until(() => rows.get("dead")?.status === "failed");
  await until(
    () => rows.get("bare")?.status === "done" && rows.get("text")?.status === "done",
    JSON.stringify(rows.all()),
  );
  await worker.stop();
  expect(rows.get("stuck")).toMatchObject({ status: "queued", attempts: 0 });
});

test("a claim that could not be written is tried for again as long as there is the job", async () => {
  const log = openLocalLog();
  let failures = 3;
  const flaky = Object.assign(Object.create(log) as typeof log, {
    write: async (write: Parameters<typeof log.write>[0]) => {
      if (failures-- > 0) throw new PerdureError("call_failed", "too many requests");
      return log.write(write);
    },
    table: (name: string) => log.table(name),
  });
  await rowsOf(jobs(log)).insert(newJob("x", "x"));
  const collection = jobs(flaky);
  const worker = runQueueWorker({ collection, run: async () => {}, onError: () => {} });
  await until(() => rowsOf(collection).get("x")?.status === "done");
  expect(failures).toBeLessThan(1);
  await worker.stop();
});
