import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RowLog, RunnerSession } from "perdure/collections";
import {
  catchUp,
  checkpointsOf,
  drainUntilIdle,
  durableStreamsWebhookAdapter,
  ensureWakeSubscription,
  handleDurableStreamsWake,
  keepWakeSubscription,
  producerOf,
  runPullWakeWorker,
  runWithLifecycle,
} from "perdure/collections";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { StreamServer, aborted, inbox, pause, startHook, until } from "./desk.ts";

/** Answers all messages of a log. */
async function answerAll(session: RunnerSession, log: RowLog): Promise<void> {
  await catchUp(session, [log]);
  const messages = inbox(log);
  const { completed } = await drainUntilIdle({
    ...messages,
    runCycle: () => messages.answer(producerOf("agent", session)),
    lifecycle: session,
    buildCheckpoint: () => checkpointsOf(log),
  });
  await session.complete({ done: completed });
}

describe("what a subscription may be", () => {
  const server = new StreamServer();
  beforeAll(() => server.start());
  afterAll(() => server.stop());

  test("made otherwise it is a conflict, unless it is to be replaced", async () => {
    const options = { baseUrl: server.url, id: "s/1", streams: ["a"], webhook: "http://127.0.0.1:9/x" };
    expect(await ensureWakeSubscription(options)).toEqual({ created: true });
    const changed = { ...options, webhook: "http://127.0.0.1:9/y" };
    await expect(ensureWakeSubscription(changed)).rejects.toMatchObject({ code: "conflict" });
    expect(await ensureWakeSubscription({ ...changed, replace: true })).toEqual({ created: true });
    expect(await ensureWakeSubscription({ ...changed, baseUrl: `${server.url}/v1/stream/` })).toEqual({
      created: false,
    });
  });

  test.each([
    ["neither webhook nor wakeStream", {}, "bad_config"],
    ["both", { webhook: "http://127.0.0.1:9/x", wakeStream: "w" }, "bad_config"],
    ["an address that the server does not post to", { webhook: "http://example.com/x" }, "bad_input"],
    ["a lease that is too short", { webhook: "http://127.0.0.1:9/x", leaseTtlMs: 10 }, "bad_input"],
    ["no server", { baseUrl: "http://127.0.0.1:9", webhook: "http://127.0.0.1:9/x" }, "disconnected"],
  ])("%s is refused", async (_what, more, code) => {
    const options = { baseUrl: server.url, id: "bad", streams: ["a"], ...more };
    await expect(ensureWakeSubscription(options)).rejects.toMatchObject({ code });
  });
});

describe.each([["memory"], ["file"]])("a server that starts again, %s", (kind) => {
  let dataDir: string | undefined;
  let server: StreamServer;
  beforeAll(async () => {
    if (kind === "file") dataDir = await mkdtemp(join(tmpdir(), "perdure-runner-"));
    server = await new StreamServer(dataDir).start();
  });
  afterAll(async () => {
    await server.stop();
    if (dataDir !== undefined) await rm(dataDir, { recursive: true, force: true });
  });

  test("webhooks: the subscription is made again, a run under way is fenced, and nothing is lost", async () => {
    const hook = await startHook();
    const adapter = durableStreamsWebhookAdapter({
      jwksUrl: `${server.url}/v1/stream/__ds/jwks.json`,
      heartbeatIntervalMs: 20,
    });
    let log = await server.open("inbox");
    const ends: unknown[] = [];
    const tokens: number[] = [];
    let isHeld = false;
    hook.handle = (request) =>
      handleDurableStreamsWake({
        request,
        adapter,
        run: async (wake) => {
          const run = runWithLifecycle(wake, adapter, async (session) => {
            tokens.push(Number(session.fenceToken));
            if (isHeld) return aborted(session.signal);
            await answerAll(session, log);
          });
          ends.push(await run.then(() => "done").catch((error: { code?: string }) => error.code));
        },
      });
    const kept = keepWakeSubscription({
      baseUrl: server.url,
      id: "agent",
      streams: ["inbox"],
      webhook: hook.url,
      everyMs: 50,
      onError: () => {},
    });
    await kept.ready;
    await until(() => ends.length > 0, "the first wake");
    await inbox(log).send("a");
    await until(() => inbox(log).texts().includes("re a"), "an answer");
    isHeld = true;
    await inbox(log).send("b");
    await until(() => tokens.length > ends.length, "the wake of b");
    const before = ends.length;
    await server.crash();
    isHeld = false;
    await server.start();
    if (kind === "memory") {
      // All is gone, what was said too: somebody says it again.
      await log.close();
      log = await server.open("inbox");
      await inbox(log).send("b");
    }
    await until(() => inbox(log).texts().includes("re b"), "the answer behind the restart");
    await until(() => ends.length > before, "the end of the run that was cut");
    expect(ends).toContain("fenced");
    // The server counts its wakes from 1 again; fences go on.
    expect(tokens).toEqual(tokens.toSorted((x, y) => x - y));
    expect(new Set(tokens).size).toBe(tokens.length);
    kept.stop();
    await hook.stop();
  });

  test("pull-wake: the worker makes its subscription again and goes on", async () => {
    const path = "pulled";
    let log = await server.open(path);
    const worker = runPullWakeWorker({
      baseUrl: server.url,
      subscriptionId: "puller",
      streams: [path],
      run: (session) => answerAll(session, log),
      onError: () => {},
    });
    await inbox(log).send("a");
    await until(() => inbox(log).texts().includes("re a"), "an answer");
    await server.crash();
    await server.start();
    if (kind === "memory") {
      await log.close();
      log = await server.open(path);
    }
    await inbox(log).send("b");
    await until(() => inbox(log).texts().includes("re b"), "the answer behind the restart");
    await worker.stop();
  });
});

describe("workers that come for their work", () => {
  const server = new StreamServer();
  beforeAll(() => server.start());
  afterAll(() => server.stop());

  const workerOf = (id: string, run: (session: RunnerSession) => Promise<unknown>, errors: unknown[] = []) =>
    runPullWakeWorker({
      baseUrl: server.url,
      subscriptionId: id,
      streams: [id],
      leaseTtlMs: 1_000,
      run,
      onError: (error) => errors.push(error),
    });

  test("invariant 7: of two workers one has the work, and all of it is done once", async () => {
    const log = await server.open("pair");
    const messages = inbox(log);
    let running = 0;
    let most = 0;
    const tokens: number[] = [];
    const errors: unknown[] = [];
    const run = async (session: RunnerSession) => {
      most = Math.max(most, ++running);
      tokens.push(Number(session.fenceToken));
      await pause(2);
      await answerAll(session, await server.open("pair"));
      running--;
    };
    const workers = [workerOf("pair", run, errors), workerOf("pair", run, errors)];
    for (let n = 0; n < 8; n++) {
      await messages.send(`m${n}`);
      await pause(5);
    }
    await until(() => messages.texts().filter((text) => text.startsWith("re")).length === 8, "all answers");
    await Promise.all(workers.map((worker) => worker.stop()));
    expect(most).toBe(1);
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    expect(errors).toEqual([]);
  });

  test("a worker that is stopped gives its wake back, and another one has it at once", async () => {
    const log = await server.open("handover");
    const messages = inbox(log);
    let began = false;
    const first = workerOf("handover", async (session) => {
      began = true;
      await aborted(session.signal);
      session.signal.throwIfAborted();
    });
    await messages.send("a");
    await until(() => began);
    const second = workerOf("handover", (session) => answerAll(session, log));
    await first.stop();
    await until(() => messages.texts().includes("re a"), "the second worker's answer");
    await second.stop();
  });

  test("a failure is told, and the work comes back when the lease is over", async () => {
    const log = await server.open("failing");
    const messages = inbox(log);
    const errors: unknown[] = [];
    let tries = 0;
    const run = async (session: RunnerSession) => {
      if (++tries === 1) throw new Error("no model");
      await answerAll(session, log);
    };
    await messages.send("a");
    const worker = workerOf("failing", run, errors);
    await until(() => messages.texts().includes("re a"), "the second try");
    expect(errors).toMatchObject([{ message: "no model" }]);
    await worker.stop();
  });
});
