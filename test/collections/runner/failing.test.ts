import type { DurableStreamsWakePayload } from "perdure/collections";
import { checkpointsOf, producerOf } from "perdure/collections/worker";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { StreamServer, aborted, answerAll, inbox, pause } from "./desk.ts";
import { until } from "../../support/until.ts";
import { webhookDesks } from "./webhook-desk.ts";

const server = new StreamServer();
const desk = webhookDesks(server);
beforeAll(() => server.start());
afterAll(() => server.stop());

describe.concurrent("deliveries and leases that fail", () => {
  test("a handler that throws is answered with 500, and the same wake is delivered and run again", async () => {
    const { hook, messages, errors, subscribe, serve } = await desk("retry");
    let tries = 0;
    serve({ type: "request-bound" }, async (session) => {
      // Each try opens the log anew, as a new process would, and must not be taken for the one before.
      const own = await server.open("retry");
      await own.write({
        changes: [{ table: "tries", key: String(++tries), operation: "insert", value: {} }],
        producer: producerOf("agent", session),
      });
      if (tries === 1) throw new Error("the model is down");
      await answerAll(session, own);
    });
    await messages.send("a");
    await subscribe();
    await until(() => messages.texts().includes("re a"), "the answer of the second try");
    const [first, second] = hook.deliveries;
    expect(first?.status).toBe(500);
    expect(second?.wakeId).toBe(first?.wakeId);
    expect(errors).toMatchObject([{ message: "the model is down" }]);
  });

  test("requirement: Webhook runtime modes: a request whose time is over is answered as not done, and woken again", async () => {
    const { hook, log, messages, errors, subscribe, serve } = await desk("budget");
    const answers: string[] = [];
    serve({ type: "request-bound", maxRequestMs: 200 }, async (session) => {
      if (session.wake.generation === 1) await aborted(session.signal);
      else await answerAll(session, log);
    });
    const handle = hook.handle;
    hook.handle = async (request) => {
      const response = await handle(request);
      answers.push(await response.clone().text());
      return response;
    };
    await messages.send("a");
    await subscribe();
    await until(() => messages.texts().includes("re a"), "the answer of the second wake");
    expect(answers[0]).toBe('{"done":false}');
    expect(hook.deliveries.length).toBeGreaterThan(1);
    expect(errors).toEqual([]);
  });

  test("a handler that does not stop when its time is over: the answer comes all the same", async () => {
    const { hook, subscribe, serve } = await desk("deaf");
    let isOver = false;
    let release = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    serve({ type: "request-bound", maxRequestMs: 300 }, async (session) => {
      await released;
      isOver = true;
      await session.complete({ done: true });
    });
    await subscribe();
    await until(() => hook.deliveries[0]?.status === 200);
    expect(isOver).toBe(false);
    release();
  });

  test("invariant 10: with heartbeats a run outlives its lease, in one wake", async () => {
    const { hook, log, messages, subscribe, serve } = await desk("long", 2_000);
    serve({ type: "ack-immediate" }, async (session) => {
      await pause(2_300);
      await answerAll(session, log);
    });
    await messages.send("a");
    await subscribe();
    await until(() => messages.texts().includes("re a"));
    expect(hook.deliveries).toHaveLength(1);
  });

  test("invariant 10: without heartbeats the wake goes to another run, and the old one is stopped and cannot write", async () => {
    const { hook, log, messages, errors, subscribe, serve, adapterOf } = await desk("lost", 1_000);
    const late: unknown[] = [];
    let cut = 0;
    let isDeaf = false;
    const adapter = adapterOf({
      postCallback: async (wake: DurableStreamsWakePayload, body: object, token: string) => {
        if (isDeaf && wake.generation === cut) throw new Error("no network");
        const headers = { authorization: `Bearer ${token}` };
        const response = await fetch(wake.callback_url, { method: "POST", body: JSON.stringify(body), headers });
        return { status: response.status, body: await response.json() };
      },
    });
    serve(
      { type: "ack-immediate" },
      async (session) => {
        if (cut > 0) return answerAll(session, log);
        cut = session.wake.generation;
        const own = await server.open("lost");
        await own.write({
          changes: [{ table: "notes", key: "begun", operation: "insert", value: {} }],
          producer: producerOf("agent", session),
        });
        isDeaf = true;
        await aborted(session.signal);
        late.push(session.signal.reason);
        await until(() => messages.texts().includes("re a"));
        // A zombie that goes on all the same.
        await inbox(own).send("b");
        const write = own.write({
          changes: [{ table: "notes", key: "zombie", operation: "insert", value: {} }],
          producer: producerOf("agent", session),
        });
        late.push(await write.catch((error: unknown) => error));
      },
      adapter,
    );
    await messages.send("a");
    await subscribe();
    await until(() => late.length === 2, "the end of the old run");
    expect(late).toMatchObject([{ code: "fenced" }, { code: "fenced" }]);
    expect(messages.texts().slice(0, 2)).toEqual(["a", "re a"]);
    expect(log.table("notes").get("zombie")).toBeUndefined();
    expect(hook.deliveries.some(({ generation }) => generation === cut + 1)).toBe(true);
    expect(errors).toEqual([]);
  });

  test("a run that died is woken again when its lease is over, whatever it had checkpointed", async () => {
    const { log, messages, subscribe, serve, hook } = await desk("died", 1_000);
    let died = 0;
    serve({ type: "ack-immediate" }, async (session) => {
      if (died > 0) return answerAll(session, log);
      died = session.wake.generation;
      await session.checkpoint(await checkpointsOf(log));
      throw new Error("out of memory");
    });
    await messages.send("a");
    await subscribe();
    await until(() => messages.texts().includes("re a"), "the answer of the second wake");
    expect(hook.deliveries.at(-1)?.generation).toBeGreaterThan(died);
  });
});
