import {
  createAgent,
  drainUntilIdle,
  durableAgent,
  durableStreamsWebhookAdapter,
  handleDurableStreamsWake,
  openLocalLog,
  rowsOf,
  runWithLifecycle,
} from "perdure/collections";
import type {
  CheckpointContract,
  DurableStreamsWakePayload,
  RunnerLifecycleAdapter,
  WebhookExecutionMode,
} from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { kept } from "./desk.ts";

test("runWithLifecycle around drainUntilIdle: claim, cycles, checkpoints, done", async () => {
  const told: string[] = [];
  const lifecycleAdapter: RunnerLifecycleAdapter<{ id: string }> = {
    claimWake: async (wake) => (told.push(`claim ${wake.id}`), { fenceToken: "1" }),
    heartbeat: async () => void told.push("heartbeat"),
    checkpoint: async (rows) => void told.push(`checkpoint ${rows.map(({ cursor }) => cursor).join()}`),
    complete: async (_state, { done }) => void told.push(`complete ${done}`),
  };
  let work = 3;
  const hasPendingRows = async () => work > 0;
  const runAgentCycle = async () => void work--;
  // Numbers as they come: cursors need no padding.
  const getCurrentCheckpoints = async (): Promise<CheckpointContract[]> => [
    { source: "chat/1", cursor: String(11 - work) },
  ];
  await runWithLifecycle({ id: "w1" }, lifecycleAdapter, async (session) => {
    const drained = await drainUntilIdle({
      hasPendingWork: async () => hasPendingRows(),
      runCycle: async () => runAgentCycle(),
      maxDurationMs: 25_000,
      maxIterations: 50,
      lifecycle: {
        heartbeat: () => session.heartbeat(),
        checkpoint: (rows) => session.checkpoint(rows),
      },
      buildCheckpoint: async () => getCurrentCheckpoints(),
    });
    expect(drained).toEqual({ completed: true, cycles: 3 });
    await session.complete({ done: drained.completed });
  });
  expect(told).toEqual([
    "claim w1",
    ...["heartbeat", "heartbeat", "heartbeat"],
    // Sent when the look behind it has found nothing; the proposal does not say when.
    "checkpoint 11",
    "complete true",
  ]);
});

/** An agent on a log in memory, and wakes for it, as the published server would send them. */
function wokenAgent(mode: WebhookExecutionMode) {
  const callbacks: object[] = [];
  const log = openLocalLog({ name: "sessions/session-123" });
  const wakeAdapter = durableStreamsWebhookAdapter({
    verifySignature: async (req) => {
      if (req.headers.get("x-secret") !== "s") throw new Error("not signed");
    },
    mode,
    heartbeatIntervalMs: 10_000,
    // It answers what the server has answered. The published server gives no new token with each callback.
    postCallback: async (_wake, body, _token) => {
      callbacks.push(body);
      return { status: 200, body: { ok: true, next_wake: false } };
    },
    // Asked for once in a wake: a server that was started again counts its wakes from 1.
    readSubscription: async () => ({ createdAt: "2026-01-01T00:00:00.000Z", leaseMs: 30_000 }),
  });
  const agent = kept(
    createAgent(
      durableAgent<DurableStreamsWakePayload>({
        name: "researcher",
        instructions: "You are a research assistant.",
        adapter: scriptedText(({ userText }) => `re: ${userText}`),
        log,
        runtime: { wakeAdapter, drain: { maxDurationMs: 25_000, maxIterations: 50 } },
      }),
    ),
  );
  const { messages } = agent.collections;
  // The names of the fields are the published server's: `generation` for `epoch`, `callback_url`, `callback_token`.
  const wake = (): DurableStreamsWakePayload => ({
    subscription_id: "researcher-1",
    wake_id: "wake-1",
    generation: 1,
    callback_url: "http://127.0.0.1:1/callback",
    callback_token: "t",
    streams: [
      { path: log.source, link_type: "explicit", acked_offset: "0", tail_offset: log.position, has_pending: true },
    ],
  });
  const request = (secret = "s") =>
    new Request("http://localhost/wake", {
      method: "POST",
      headers: { "x-secret": secret },
      body: JSON.stringify(wake()),
    });
  const ask = async (content: string) =>
    messages.insert({ actorId: "user-1", targetAgent: "researcher", content }).isPersisted.promise;
  const replies = () =>
    rowsOf(messages)
      .all()
      .flatMap(({ role, content }) => (role === "assistant" ? [content] : []));
  return { agent, wakeAdapter, callbacks, wake, request, ask, replies };
}

test("webhooks, request-bound: the work is done within the request", async () => {
  const { agent, wakeAdapter, callbacks, wake, ask, replies } = wokenAgent({ type: "request-bound" });
  await ask("hi");
  async function handleWebhookRequestBound(webhookWakePayload: DurableStreamsWakePayload) {
    const checkpointState = new Map(webhookWakePayload.streams.map((s) => [s.path, s.tail_offset] as const));
    const result = await runWithLifecycle(webhookWakePayload, wakeAdapter, async (session) => {
      const drained = await agent.drainUntilIdle({
        maxDurationMs: 25_000,
        lifecycle: {
          heartbeat: () => session.heartbeat(),
          checkpoint: async (cp) => {
            await session.checkpoint(cp);
            for (const item of cp) checkpointState.set(item.source, item.cursor);
          },
        },
        buildCheckpoint: async () => [...checkpointState.entries()].map(([source, cursor]) => ({ source, cursor })),
      });
      await session.complete({ done: drained.completed });
      return drained;
    });
    return new Response(JSON.stringify({ done: result.completed }), {
      status: 200,
      headers: { "content-type": "application/json" },
    });
  }
  const response = await handleWebhookRequestBound(wake());
  expect(await response.json()).toEqual({ done: true });
  expect(replies()).toEqual(["re: hi"]);
  expect(callbacks.at(-1)).toMatchObject({ done: true });
});

test("webhooks, ack-immediate: the answer comes at once, the work goes on behind it; handleWake does it all", async () => {
  const { agent, callbacks, request, ask, replies } = wokenAgent({ type: "ack-immediate", status: 202 });
  await ask("hi");
  expect((await agent.handleWake(request("wrong"))).status).toBe(401);
  const response = await agent.handleWake(request());
  expect([response.status, await response.json()]).toEqual([202, { accepted: true }]);
  await until(() => replies().length === 1);
  await until(() => callbacks.some((body) => "done" in body));
});

test("webhooks: handleDurableStreamsWake takes a request, an adapter, a mode and what to run", async () => {
  const { agent, wakeAdapter, request, ask, replies } = wokenAgent({ type: "ack-immediate" });
  await ask("hi");
  const response = await handleDurableStreamsWake({
    request: request(),
    adapter: wakeAdapter,
    mode: { type: "request-bound", maxRequestMs: 20_000 },
    run: async (wake) => void (await agent.runWake(wake)),
  });
  expect(response.status).toBe(200);
  expect(replies()).toEqual(["re: hi"]);
});
