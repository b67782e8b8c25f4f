import { createCollection, localOnlyCollectionOptions } from "@tanstack/db";
import type { QueueJob } from "perdure/collections/worker";
import { logCollectionOptions, rowsOf } from "perdure/collections";
import { newJob, producerOf, runQueueWorker } from "perdure/collections/worker";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { backends } from "../backends.ts";
import type { TestPlace } from "../backends.ts";
import { aborted, pause } from "./desk.ts";
import { until } from "../../support/until.ts";

type Job = QueueJob<{ text: string }>;

describe.each(backends)("a queue in a collection: $name", ({ start }) => {
  let place: TestPlace;
  let count = 0;
  beforeAll(async () => {
    place = await start();
  });
  afterAll(() => place.stop());

  /** A queue of the test's own, opened by two processes. */
  async function queue() {
    const name = `jobs${++count}`;
    const open = async () => {
      const log = await place.open();
      const options = logCollectionOptions<Job>({ log, name, getKey: (job) => job.id });
      const collection = createCollection(options);
      await collection.preload();
      return collection;
    };
    const [one, two] = [await open(), await open()];
    const status = () =>
      Object.fromEntries(
        rowsOf(one)
          .all()
          .map(({ id, status }) => [id, status]),
      );
    return { one, two, status, rows: rowsOf(one) };
  }

  test("requirement: Runner lifecycle primitives: two workers do all jobs, each once", async () => {
    const { one, two, status, rows } = await queue();
    const done: string[] = [];
    const workers = [one, two].map((collection) =>
      runQueueWorker({
        collection,
        concurrency: 2,
        run: async (session, job) => {
          await pause(1);
          const log = rowsOf(collection).log!;
          await log.write({
            changes: [{ table: `results-${job.id}`, key: session.fenceToken!, operation: "insert", value: {} }],
            producer: producerOf(`job:${job.id}`, session),
          });
          done.push(job.payload.text);
        },
      }),
    );
    for (let n = 0; n < 6; n++) await rows.insert(newJob({ text: `t${n}` }, `j${n}`));
    await until(() => Object.values(status()).filter((one) => one === "done").length === 6, "all jobs");
    await Promise.all(workers.map((worker) => worker.stop()));
    expect(done.toSorted()).toEqual(["t0", "t1", "t2", "t3", "t4", "t5"]);
    expect(rows.get("j0")).toMatchObject({ status: "done", attempts: 1, fence: 1 });
    expect(rows.get("j0")).not.toHaveProperty("owner");
  });

  test("a job that fails is tried again and then given up, and harms no other job", async () => {
    const { one, status, rows } = await queue();
    const errors: unknown[] = [];
    let tries = 0;
    await rows.insert(newJob({ text: "bad" }, "bad"));
    await rows.insert(newJob({ text: "good" }, "good"));
    const worker = runQueueWorker({
      collection: one,
      maxAttempts: 2,
      onError: (error) => errors.push(error),
      run: async (_session, job) => {
        if (job.payload.text === "bad") throw new Error(`try ${++tries}`);
      },
    });
    await until(() => status()["bad"] === "failed" && status()["good"] === "done", "both ends");
    await worker.idle();
    await worker.stop();
    expect(rows.get("bad")).toMatchObject({ attempts: 2, error: "try 2" });
    expect(errors).toMatchObject([{ message: "try 1" }, { message: "try 2" }]);
  });

  test("a job that says there is more goes on from its checkpoint, and counts as one attempt", async () => {
    const { one, status, rows } = await queue();
    const seen: unknown[] = [];
    const codes: unknown[] = [];
    await rows.insert(newJob({ text: "long" }, "long"));
    const worker = runQueueWorker({
      collection: one,
      run: async (session, job) => {
        seen.push(job.checkpoints ?? {});
        // Not behind what the run before has kept, either.
        const back = session.checkpoint([{ source: "file", cursor: "0" }]);
        codes.push(await back.then(() => "kept").catch((error: { code?: string }) => error.code));
        await session.checkpoint([{ source: "file", cursor: String(seen.length) }]);
        await session.complete({ done: seen.length === 3 });
      },
    });
    await until(() => status()["long"] === "done", "the job");
    await worker.stop();
    expect(seen).toEqual([{}, { file: "1" }, { file: "2" }]);
    expect(codes).toEqual(["kept", "bad_input", "bad_input"]);
    expect(rows.get("long")).toMatchObject({ attempts: 1, fence: 3 });
  });

  test("a worker that stops puts its job back; another one has it at once", async () => {
    const { one, two, status, rows } = await queue();
    await rows.insert(newJob({ text: "a" }, "a"));
    let began = false;
    const first = runQueueWorker({
      collection: one,
      run: async (session) => {
        began = true;
        await aborted(session.signal);
      },
    });
    await until(() => began);
    const second = runQueueWorker({ collection: two, run: async () => {} });
    await first.stop();
    await until(() => status()["a"] === "done", "the second worker");
    await second.stop();
    expect(rows.get("a")).toMatchObject({ attempts: 1, fence: 2 });
  });

  test("a job whose worker has died is taken over when its heartbeat stands still, and given up when all die", async () => {
    const { two, rows } = await queue();
    const dead = { status: "running", owner: "dead", leaseMs: 50, fence: 4, beat: 9 } as const;
    await rows.insert({ ...newJob({ text: "left" }, "left"), ...dead, attempts: 1 });
    await rows.insert({ ...newJob({ text: "poison" }, "poison"), ...dead, attempts: 3 });
    const ran: string[] = [];
    const worker = runQueueWorker({ collection: two, run: async (_session, job) => void ran.push(job.id) });
    await until(() => rows.get("left")?.status === "done" && rows.get("poison")?.status === "failed", "both");
    await worker.stop();
    expect(ran).toEqual(["left"]);
    expect(rows.get("left")).toMatchObject({ attempts: 2, fence: 5 });
    expect(rows.get("poison")).toMatchObject({ error: "Its workers died." });
  });
});

test("a collection that is on no log serves one process", async () => {
  const collection = createCollection(localOnlyCollectionOptions<Job, string>({ getKey: (job) => job.id }));
  const rows = rowsOf(collection);
  const ran: string[] = [];
  const worker = runQueueWorker({ collection, run: async (_session, job) => void ran.push(job.payload.text) });
  await rows.insert(newJob({ text: "a" }, "a"));
  await until(() => rows.get("a")?.status === "done");
  await worker.stop();
  expect(ran).toEqual(["a"]);
});
