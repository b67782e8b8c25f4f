import type { DurableStreamsWakePayload, WebhookExecutionMode } from "perdure/collections";
import { handleDurableStreamsWake, runWithLifecycle } from "perdure/collections";
import { catchUp, checkpointsOf, requestWake } from "perdure/collections/worker";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { StreamServer, answerAll, pause } from "./desk.ts";
import { until } from "../../support/until.ts";
import { webhookDesks } from "./webhook-desk.ts";
import type { Session } from "./webhook-desk.ts";

const server = new StreamServer();
const desk = webhookDesks(server);
beforeAll(() => server.start());
afterAll(() => server.stop());

const modes: WebhookExecutionMode[] = [{ type: "request-bound" }, { type: "ack-immediate", status: 202 }];

describe.each(modes)("webhooks, $type", (mode) => {
  test("requirement: Webhook runtime modes: a message wakes the agent, its own writes do not wake it for ever", async () => {
    const { hook, log, messages, subscribe, serve, errors } = await desk(`mode-${mode.type}`);
    const sessions: Session[] = [];
    serve(mode, async (session) => {
      sessions.push(session);
      await answerAll(session, log);
    });
    // Written before there is a subscription: the wake of its creation is for that.
    await messages.send("early");
    expect(await subscribe()).toEqual({ created: true });
    expect(await subscribe()).toEqual({ created: false });
    await until(() => messages.texts().includes("re early"), "the first answer");
    await until(() => sessions.every(({ ended }) => ended), "its end");
    const before = hook.deliveries.length;
    await messages.send("hello");
    await until(() => messages.texts().includes("re hello"), "the second answer");
    await pause(100);
    expect(messages.texts()).toEqual(["early", "re early", "hello", "re hello"]);
    expect(hook.deliveries.length - before).toBe(1);
    expect(hook.deliveries[0]?.status).toBe(mode.type === "ack-immediate" ? 202 : 200);
    const tokens = sessions.map(({ fenceToken }) => Number(fenceToken));
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    expect(new Set(tokens).size).toBe(tokens.length);
    expect(errors).toEqual([]);
  });

  test("messages that come while it works are answered too, in one wake or another, each once", async () => {
    const { hook, log, messages, subscribe, serve } = await desk(`busy-${mode.type}`);
    serve(mode, (session) => answerAll(session, log));
    await subscribe();
    for (let n = 0; n < 10; n++) await messages.send(`m${n}`);
    await until(() => messages.texts().filter((text) => text.startsWith("re")).length === 10, "all answers");
    await pause(100);
    expect(messages.texts().filter((text) => text.startsWith("re"))).toHaveLength(10);
    expect(hook.deliveries.length).toBeLessThanOrEqual(21);
  });
});

describe("next wakes", () => {
  test("invariant 9: `done: false` has the work woken again at once, whatever was checkpointed", async () => {
    const { hook, log, messages, subscribe, serve } = await desk("not-done");
    const seen: string[][] = [];
    serve({ type: "ack-immediate" }, async (session) => {
      await catchUp(session, [log]);
      seen.push(messages.texts());
      await session.checkpoint(await checkpointsOf(log));
      await session.complete({ done: seen.length >= 3 });
    });
    await messages.send("a");
    await subscribe();
    await until(() => seen.length === 3, "the third wake");
    await pause(50);
    expect(hook.deliveries.map(({ generation }) => generation)).toEqual([1, 2, 3]);
  });

  test("what was written behind the checkpoint wakes again, and `requestWake` does without a write", async () => {
    const { hook, log, messages, subscribe, serve } = await desk("behind");
    serve({ type: "ack-immediate" }, async (session) => {
      await catchUp(session, [log]);
      const checkpoints = await checkpointsOf(log);
      if (session.wake.generation === 1) await messages.send("late");
      await session.checkpoint(checkpoints);
      await session.complete({ done: true });
    });
    await subscribe();
    await until(() => hook.deliveries.length === 2, "the second wake");
    await pause(50);
    expect(hook.deliveries).toHaveLength(2);
    await requestWake({ baseUrl: server.url, id: "behind" });
    await until(() => hook.deliveries.length === 3, "the wake that was asked for");
    await pause(50);
    expect(hook.deliveries).toHaveLength(3);
  });

  test("trap: acks that never advance: wakes are counted, and put off to the lease", async () => {
    const { hook, subscribe, serve } = await desk("stuck");
    serve({ type: "request-bound" }, async (session) => {
      // What the wake said at its start is no progress.
      const checkpoints = session.wake.streams.map((s) => ({ source: s.path, cursor: s.acked_offset }));
      await session.checkpoint(checkpoints);
      await session.complete({ done: true });
    });
    await subscribe();
    await until(() => hook.deliveries.length >= 21, "wakes");
    await pause(200);
    expect(hook.deliveries).toHaveLength(21);
  });

  test("a run without any checkpoint that says done acks what it was woken for", async () => {
    const { hook, messages, subscribe, serve } = await desk("plain-done");
    serve({ type: "request-bound" }, (session) => session.complete({ done: true }));
    await messages.send("a");
    await subscribe();
    await until(() => hook.deliveries.length === 1);
    await pause(100);
    expect(hook.deliveries).toHaveLength(1);
  });

  test("invariant 8: a checkpoint behind what was acked, or of a stranger's stream, is refused", async () => {
    const { log, messages, subscribe, serve } = await desk("regress");
    const codes: unknown[] = [];
    const refused = (work: Promise<unknown>) => work.catch((error: { code?: string }) => codes.push(error.code));
    serve({ type: "ack-immediate" }, async (session) => {
      if (session.wake.generation === 1) return answerAll(session, log);
      const stream = session.wake.streams.find(({ path }) => path === "regress");
      await refused(session.checkpoint([{ source: "regress", cursor: "0000000000000000_0000000000000000" }]));
      await refused(session.checkpoint([{ source: "other", cursor: stream?.tail_offset ?? "" }]));
      await session.checkpoint(await checkpointsOf(log));
      await refused(session.checkpoint([{ source: log.source, cursor: stream?.acked_offset ?? "" }]));
      codes.push("end");
      await session.complete({ done: true });
    });
    await messages.send("a");
    await subscribe();
    await until(() => messages.texts().includes("re a"));
    await messages.send("b");
    await until(() => codes.includes("end"));
    expect(codes).toEqual(["bad_input", "bad_input", "bad_input", "end"]);
  });

  test("a checkpoint beyond the end of the stream is refused by the server, at the end of the wake", async () => {
    const { log, errors, subscribe, serve } = await desk("beyond");
    serve({ type: "ack-immediate" }, async (session) => {
      await session.checkpoint([{ source: log.source, cursor: "9999999999999999_9999999999999999" }]);
      await session.complete({ done: true });
    });
    await subscribe();
    await until(() => errors.length > 0);
    expect(errors).toMatchObject([{ code: "bad_input", message: expect.stringContaining("INVALID_OFFSET") }]);
  });
});

describe("one run of one wake", () => {
  test("invariant 7: the same delivery twice is run once; a wake that is over is not run", async () => {
    const { hook, subscribe, adapterOf } = await desk("twice");
    const adapter = adapterOf();
    let runs = 0;
    const bodies: string[] = [];
    const handle = (request: Request) =>
      handleDurableStreamsWake({
        request,
        adapter,
        mode: { type: "request-bound" },
        run: (wake) =>
          runWithLifecycle(wake, adapter, async (session) => {
            runs++;
            await pause(20);
            await session.complete({ done: true });
          }),
      });
    hook.handle = async (request) => {
      const copies = [request.clone(), request.clone(), request];
      const answers = await Promise.all(copies.slice(0, 2).map(handle));
      answers.push(await handle(copies[2]!));
      for (const answer of answers) bodies.push(await answer.clone().text());
      return answers[0]!;
    };
    await subscribe();
    await until(() => bodies.length === 3);
    expect(runs).toBe(1);
    expect(bodies.filter((body) => body.includes("duplicate"))).toHaveLength(2);
  });

  test("invariant 7: a stale wake is refused by the server before anything runs", async () => {
    const { hook, subscribe, serve, adapterOf } = await desk("stale");
    const wakes: DurableStreamsWakePayload[] = [];
    serve({ type: "request-bound" }, async (session) => {
      wakes.push(session.wake);
      await session.complete({ done: true });
    });
    await subscribe();
    await until(() => wakes.length === 1 && hook.deliveries[0]?.status === 200);
    let ran = false;
    // Another process, which knows nothing of this wake.
    const run = runWithLifecycle(wakes[0]!, adapterOf(), async () => {
      ran = true;
    });
    await expect(run).rejects.toMatchObject({ code: "fenced" });
    expect(ran).toBe(false);
  });

  test("invariant 7: of two processes that are given the same wake, the one that writes second is fenced", async () => {
    const { hook, messages, subscribe, adapterOf } = await desk("two-processes");
    const outcomes: unknown[] = [];
    hook.handle = async (request) => {
      const [first, second] = [request.clone(), request];
      const logs = [await server.open("two-processes"), await server.open("two-processes")];
      const started: (() => void)[] = [];
      const both = Promise.all(logs.map((_, n) => new Promise<void>((resolve) => (started[n] = resolve))));
      await Promise.all(
        [first, second].map(async (copy, n) => {
          const adapter = adapterOf();
          const wake = await adapter.verify(copy);
          const run = runWithLifecycle(wake, adapter, async (session) => {
            started[n]!();
            await both;
            await answerAll(session, logs[n]!);
            return "done";
          });
          outcomes.push(await run.catch((error: { code?: string }) => error.code));
        }),
      );
      return new Response("{}");
    };
    await messages.send("a");
    await subscribe();
    await until(() => outcomes.length === 2);
    expect(outcomes.toSorted()).toEqual(["done", "fenced"]);
    expect(messages.texts()).toEqual(["a", "re a"]);
  });
});
