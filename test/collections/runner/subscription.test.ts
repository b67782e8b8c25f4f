import type { RunnerSession } from "perdure/collections";
import { ensureWakeSubscription, runPullWakeWorker } from "perdure/collections/worker";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { StreamServer, aborted, answerAll, inbox, pause } from "./desk.ts";
import { until } from "../../support/until.ts";

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

  test("a wake that comes just behind a look that found nothing is heard", async () => {
    const log = await server.open("between");
    const messages = inbox(log);
    let looks = 0;
    const worker = runPullWakeWorker({
      baseUrl: server.url,
      subscriptionId: "between",
      streams: ["between"],
      run: (session) => answerAll(session, log),
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        if (!String(input).endsWith("/claim") || response.status !== 409) return response;
        if (++looks === 1) await messages.send("a");
        return response;
      },
    });
    await until(() => messages.texts().includes("re a"), "the answer");
    await worker.stop();
    expect(messages.texts()).toEqual(["a", "re a"]);
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
    expect(messages.texts()).toEqual(["a", "re a"]);
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
