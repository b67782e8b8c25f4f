import { createCollection } from "@tanstack/db";
import type { DurableStreamsWakePayload, RunnerLifecycleAdapter, RunnerSession } from "perdure/collections";
import type { QueueJob } from "perdure/collections/worker";
import { durableStreamsWebhookAdapter, logCollectionOptions, rowsOf, runWithLifecycle } from "perdure/collections";
import { ensureWakeSubscription, newJob, pullWakeAdapter, tableQueueAdapter } from "perdure/collections/worker";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { backends } from "../backends.ts";
import { StreamServer, aborted, startHook } from "./desk.ts";
import { until } from "../../support/until.ts";

/** Work that a transport has woken somebody for. */
interface Work<TWake> {
  readonly adapter: RunnerLifecycleAdapter<TWake>;
  /** What somebody else who is woken for it has. */
  readonly other: RunnerLifecycleAdapter<TWake>;
  /** The next wake that the transport gives. */
  next(): Promise<TWake>;
  /** A source of the work, and two cursors of it, the earlier one first. */
  readonly source: string;
  readonly cursors: readonly [string, string];
}

interface Transport<TWake> {
  readonly name: string;
  /** The shortest lease that it gives. */
  readonly shortLeaseMs: number;
  /** Makes work of its own for each test. */
  start(): Promise<(id: string, leaseMs?: number) => Promise<Work<TWake>>>;
  stop(): Promise<void>;
}

const LONG_LEASE_MS = 30_000;

function webhooks(): Transport<DurableStreamsWakePayload> {
  const server = new StreamServer();
  return {
    name: "webhooks of Durable Streams",
    shortLeaseMs: 1_000,
    stop: () => server.stop(),
    start: async () => {
      await server.start();
      return async (id, leaseTtlMs = LONG_LEASE_MS) => {
        const hook = await startHook();
        server.onStop(() => hook.stop());
        const adapter = durableStreamsWebhookAdapter({ jwksUrl: `${server.url}/v1/stream/__ds/jwks.json` });
        const wakes: DurableStreamsWakePayload[] = [];
        hook.handle = async (request) => {
          wakes.push(await adapter.verify(request));
          return new Response("{}", { status: 202 });
        };
        await ensureWakeSubscription({ baseUrl: server.url, id, streams: [id], webhook: hook.url, leaseTtlMs });
        const cursors = await twoCursors(server, id);
        const next = async () => {
          await until(() => wakes.length > 0, "a wake");
          return wakes.shift()!;
        };
        // The delivery is the claim: the same wake twice is what there is to be refused.
        return { adapter, other: adapter, next, source: id, cursors };
      };
    },
  };
}

function pull(): Transport<{ subscription_id: string }> {
  const server = new StreamServer();
  return {
    name: "pull-wake of Durable Streams",
    shortLeaseMs: 1_000,
    stop: () => server.stop(),
    start: async () => {
      await server.start();
      return async (id, leaseTtlMs = LONG_LEASE_MS) => {
        await ensureWakeSubscription({ baseUrl: server.url, id, streams: [id], wakeStream: `${id}-wakes`, leaseTtlMs });
        const cursors = await twoCursors(server, id);
        const of = (worker: string) => pullWakeAdapter({ baseUrl: server.url, subscriptionId: id, worker });
        const next = async () => ({ subscription_id: id });
        return { adapter: of("one"), other: of("two"), next, source: id, cursors };
      };
    },
  };
}

/** Two offsets of a stream with two messages. */
async function twoCursors(server: StreamServer, id: string): Promise<[string, string]> {
  const log = await server.open(id);
  const write = (key: string) => log.write({ changes: [{ table: "t", key, operation: "insert", value: {} }] });
  return [(await write("a")).position, (await write("b")).position];
}

const queues = backends.map((backend): Transport<{ id: string }> => {
  let stop = async () => {};
  return {
    name: `a queue in a collection, ${backend.name}`,
    shortLeaseMs: 200,
    stop: () => stop(),
    start: async () => {
      const place = await backend.start();
      stop = () => place.stop();
      const open = async () => {
        const log = await place.open();
        return createCollection(logCollectionOptions<QueueJob>({ log, name: "jobs", getKey: (job) => job.id }));
      };
      const [one, two] = [await open(), await open()];
      await Promise.all([one.preload(), two.preload()]);
      return async (id, leaseMs = LONG_LEASE_MS) => {
        await rowsOf(one).insert(newJob({ text: id }, id));
        await until(() => rowsOf(two).get(id) !== undefined);
        const [adapter, other] = [one, two].map((collection) => tableQueueAdapter({ collection, leaseMs }));
        if (adapter === undefined || other === undefined) throw new Error("no adapters");
        const next = async () => {
          await until(() => rowsOf(two).get(id)?.status !== "running" || other.expiresInMs(id) === 0, "the job");
          return { id };
        };
        return { adapter, other, next, source: "topic", cursors: ["1", "2"] };
      };
    },
  };
});

function suite<TWake>(transport: Transport<TWake>): void {
  describe.concurrent(`the lifecycle: ${transport.name}`, () => {
    let work: (id: string, leaseMs?: number) => Promise<Work<TWake>>;
    beforeAll(async () => {
      work = await transport.start();
    });
    afterAll(async () => {
      await transport.stop();
    });

    test("requirement: Runner lifecycle primitives: claim, heartbeat, checkpoint and done go through", async () => {
      const { adapter, other, next, source, cursors } = await work("whole");
      const wake = await next();
      await runWithLifecycle(wake, adapter, async (session) => {
        await session.heartbeat();
        await session.checkpoint([{ source, cursor: cursors[0] }]);
        await session.checkpoint([{ source, cursor: cursors[1] }]);
        await session.complete({ done: true });
      });
      // Nothing is left for anybody.
      await expect(runWithLifecycle(wake, other, async () => {})).rejects.toMatchObject({ code: "fenced" });
    });

    test("invariant 7: while one has it nobody else gets it, and nothing of theirs runs", async () => {
      const { adapter, other, next } = await work("claimed");
      const wake = await next();
      let ran = 0;
      await runWithLifecycle(wake, adapter, async (session) => {
        const second = runWithLifecycle(wake, other, async () => void ran++);
        await expect(second).rejects.toMatchObject({ code: "fenced" });
        await session.complete({ done: true });
      });
      expect(ran).toBe(0);
    });

    test("invariant 8: a checkpoint that goes back is refused, each time alike", async () => {
      const { adapter, next, source, cursors } = await work("back");
      await runWithLifecycle(await next(), adapter, async (session) => {
        await session.checkpoint([{ source, cursor: cursors[1] }]);
        for (let time = 0; time < 2; time++) {
          const back = session.checkpoint([{ source, cursor: cursors[0] }]);
          await expect(back).rejects.toMatchObject({ code: "bad_input" });
        }
        await session.complete({ done: true });
      });
    });

    test("invariant 9: what is not done is there again, under a greater fence; what is done is not", async () => {
      const { adapter, next } = await work("again");
      const tokens: number[] = [];
      for (const done of [false, false, true]) {
        await runWithLifecycle(await next(), adapter, async (session) => {
          tokens.push(Number(session.fenceToken));
          await session.complete({ done });
        });
      }
      expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
      expect(new Set(tokens).size).toBe(3);
    });

    test("invariant 10: who sends no heartbeats loses the work to another and can do nothing more with it", async () => {
      const { adapter, other, next } = await work("silent", transport.shortLeaseMs);
      const { claimWake, complete, leaseMs } = bound(adapter);
      const mute: RunnerLifecycleAdapter<TWake> = {
        claimWake,
        complete,
        ...(leaseMs === undefined ? {} : { leaseMs }),
      };
      const sessions: RunnerSession<TWake>[] = [];
      const lost = claimed(mute, next, async (session) => {
        sessions.push(session);
        await aborted(session.signal);
      });
      await expect(lost).rejects.toMatchObject({ code: "fenced" });
      const [old] = sessions;
      if (old?.fenceToken === undefined) throw new Error("it never ran");
      const state = { wake: old.wake, fenceToken: old.fenceToken };
      await claimed(other, next, async (session) => {
        expect(Number(session.fenceToken)).toBeGreaterThan(Number(old.fenceToken));
        await expect(adapter.heartbeat?.(state)).rejects.toMatchObject({ code: "fenced" });
        await expect(adapter.complete?.(state, { done: true })).rejects.toMatchObject({ code: "fenced" });
        await session.complete({ done: true });
      });
    });
  });
}

/** The adapter's methods as functions. */
function bound<TWake>(adapter: RunnerLifecycleAdapter<TWake>) {
  return {
    leaseMs: adapter.leaseMs,
    claimWake: adapter.claimWake.bind(adapter),
    complete: async (...args: Parameters<NonNullable<typeof adapter.complete>>) => adapter.complete?.(...args),
  };
}

/** Runs `handler` as soon as the work can be had: its lease may end a little later there than here. */
async function claimed<TWake>(
  adapter: RunnerLifecycleAdapter<TWake>,
  next: () => Promise<TWake>,
  handler: (session: RunnerSession<TWake>) => Promise<void>,
): Promise<void> {
  for (;;) {
    let began = false;
    try {
      return await runWithLifecycle(await next(), adapter, (session) => ((began = true), handler(session)));
    } catch (error) {
      if (began) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

suite(webhooks());
suite(pull());
for (const queue of queues) suite(queue);
