import { expect, test } from "vitest";
import type { RunnerSession } from "./lifecycle.ts";
import { runWithLifecycle } from "./lifecycle.ts";
import type { DurableStreamsWakePayload } from "./control.ts";
import type { WakeCallback } from "./webhook.ts";
import { durableStreamsWebhookAdapter } from "./webhook.ts";

const wakeOf = (generation: number): DurableStreamsWakePayload => ({
  subscription_id: "s",
  wake_id: `w${generation}`,
  generation,
  streams: [
    { path: "chat/1", link_type: "explicit", acked_offset: "01", tail_offset: "03", has_pending: true },
    { path: "chat/2", link_type: "explicit", acked_offset: "05", tail_offset: "05", has_pending: false },
  ],
  callback_url: "http://127.0.0.1:9/v1/stream/__ds/subscriptions/s/callback",
  callback_token: "secret",
});

/** An adapter whose callbacks are written down and answered by `answer`; good ones by default. */
function adapterOf(
  answer: (body: WakeCallback) => { status: number; code?: string } = () => ({ status: 200 }),
  more: object = {},
) {
  const sent: Partial<WakeCallback>[] = [];
  const adapter = durableStreamsWebhookAdapter({
    keys: [],
    readSubscription: async () => ({ createdAt: "2026-01-01T00:00:00.000Z", leaseMs: 10_000 }),
    postCallback: async (wake, body, token) => {
      expect([body.wake_id, body.generation, token]).toEqual([wake.wake_id, wake.generation, "secret"]);
      const { wake_id: _wake, generation: _generation, ...rest } = body;
      sent.push(rest);
      const { status, code } = answer(body);
      return { status, body: code === undefined ? { ok: true, next_wake: false } : { error: { code } } };
    },
    ...more,
  });
  return { adapter, sent };
}

const work = (run: (session: RunnerSession<DurableStreamsWakePayload>) => Promise<unknown>) => run;

test("acks go with done: what was checkpointed, and for the other streams what the wake told of", async () => {
  const { adapter, sent } = adapterOf();
  const checkpointed = work(async (session) => {
    expect(session.tails).toEqual([
      { source: "chat/1", cursor: "03" },
      { source: "chat/2", cursor: "05" },
    ]);
    await session.checkpoint([{ source: "http://127.0.0.1:9/v1/stream/chat/1", cursor: "02" }]);
    await session.checkpoint([{ source: "http://127.0.0.1:9/v1/stream/chat/1", cursor: "04" }]);
    await session.complete({ done: true });
  });
  await runWithLifecycle(wakeOf(1), adapter, checkpointed);
  const acks = [
    { stream: "chat/1", offset: "04" },
    { stream: "chat/2", offset: "05" },
  ];
  expect(sent).toEqual([{}, { acks, done: true }]);
});

test("what is not done acks nothing, so that the server wakes again", async () => {
  const { adapter, sent } = adapterOf();
  const unfinished = work(async (session) => {
    await session.checkpoint([{ source: "chat/1", cursor: "03" }]);
    await session.complete({ done: false });
  });
  await runWithLifecycle(wakeOf(1), adapter, unfinished);
  expect(sent).toEqual([{}, { done: true }]);
});

test("exact checkpoints may be acked at once", async () => {
  const { adapter, sent } = adapterOf(undefined, { acks: "at-once" });
  const exact = work(async (session) => {
    await session.checkpoint([{ source: "chat/1", cursor: "02" }]);
    await session.complete({ done: false });
  });
  await runWithLifecycle(wakeOf(1), adapter, exact);
  expect(sent).toEqual([{}, { acks: [{ stream: "chat/1", offset: "02" }] }, { done: true }]);
});

test.each([
  [409, "FENCED"],
  [401, "TOKEN_EXPIRED"],
  [401, "TOKEN_INVALID"],
  [404, "SUBSCRIPTION_NOT_FOUND"],
])("a callback that is answered with %i %s says that the work is lost", async (status, code) => {
  let calls = 0;
  const { adapter } = adapterOf(() => (++calls === 1 ? { status: 200 } : { status, code }), { heartbeatIntervalMs: 1 });
  const reasons: unknown[] = [];
  const run = runWithLifecycle(wakeOf(1), adapter, async ({ signal }) => {
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    reasons.push(signal.reason);
  });
  await expect(run).rejects.toMatchObject({ code: "fenced" });
  expect(reasons).toMatchObject([{ code: "fenced" }]);
  // It is over here, whatever is delivered again.
  expect(adapter.isKnown(wakeOf(1))).toBe(true);
});

test("invariant 7: a wake that the server calls stale is over: delivered again, nobody is asked again", async () => {
  const { adapter, sent } = adapterOf(() => ({ status: 409, code: "FENCED" }));
  for (let time = 0; time < 2; time++) {
    await expect(runWithLifecycle(wakeOf(1), adapter, async () => {})).rejects.toMatchObject({ code: "fenced" });
  }
  expect(sent).toHaveLength(1);
});

test("a server that fails for a while loses nobody their work", async () => {
  let calls = 0;
  const { adapter } = adapterOf(() => (++calls === 2 ? { status: 500, code: "X" } : { status: 200 }), {
    heartbeatIntervalMs: 1,
  });
  const patient = work(async (session) => {
    while (calls < 4) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(session.signal.aborted).toBe(false);
    await session.complete({ done: true });
  });
  await runWithLifecycle(wakeOf(1), adapter, patient);
});

test("a claim that did not get through may be made again; each try has a fence of its own, below the next wake's", async () => {
  let calls = 0;
  const { adapter } = adapterOf(() => (++calls === 1 ? { status: 500, code: "X" } : { status: 200 }));
  const tokens: number[] = [];
  const note = work(async (session) => {
    tokens.push(Number(session.fenceToken));
    if (tokens.length === 1) throw new Error("no model");
    await session.complete({ done: true });
  });
  await expect(runWithLifecycle(wakeOf(1), adapter, note)).rejects.toMatchObject({ code: "disconnected" });
  await expect(runWithLifecycle(wakeOf(1), adapter, note)).rejects.toThrow("no model");
  await runWithLifecycle(wakeOf(1), adapter, note);
  await runWithLifecycle(wakeOf(2), adapter, note);
  expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
  expect(new Set(tokens).size).toBe(3);
  expect(tokens.every((token) => Number.isSafeInteger(token))).toBe(true);
});

test("a subscription that was made again a millisecond later has greater fences from its first wake on", async () => {
  const tokenOf = async (createdAt: string, generation: number) => {
    const { adapter } = adapterOf(undefined, { readSubscription: async () => ({ createdAt, leaseMs: 1_000 }) });
    return Number((await adapter.claimWake(wakeOf(generation), { signal: new AbortController().signal })).fenceToken);
  };
  const before = await tokenOf("2026-01-01T00:00:00.000Z", 100);
  expect(await tokenOf("2026-01-01T00:00:00.001Z", 1)).toBeGreaterThan(before);
});
