import { createCollection } from "@tanstack/db";
import type {
  CheckpointContract,
  RunnerLifecycleAdapter,
  RunnerSession,
  WebhookExecutionMode,
} from "perdure/collections";
import type { RowProducer } from "perdure/collections/log";
import type { QueueJob } from "perdure/collections/worker";
import {
  drainUntilIdle,
  durableStreamsWebhookAdapter,
  handleDurableStreamsWake,
  logCollectionOptions,
  openLocalLog,
  runWithLifecycle,
} from "perdure/collections";
import { newJob, producerOf, runQueueWorker } from "perdure/collections/worker";
import { expectTypeOf } from "vitest";

// The wake's type goes from the adapter to the session, and the handler's result comes out.
declare const alarms: RunnerLifecycleAdapter<{ name: string }>;
const result = runWithLifecycle({ name: "daily" }, alarms, async (session) => {
  expectTypeOf(session).toEqualTypeOf<RunnerSession<{ name: string }>>();
  expectTypeOf(session.wake.name).toEqualTypeOf<string>();
  expectTypeOf(producerOf("agent", session)).toEqualTypeOf<RowProducer>();
  return 5;
});
expectTypeOf(result).toEqualTypeOf<Promise<number>>();

// @ts-expect-error: another transport's wake.
void runWithLifecycle({ id: 1 }, alarms, async () => {});
// @ts-expect-error: done is never left out.
void runWithLifecycle({ name: "daily" }, alarms, (session) => session.complete({}));

// A session is a lifecycle for a drain as it is.
declare const session: RunnerSession;
expectTypeOf(
  drainUntilIdle({
    hasPendingWork: async () => false,
    runCycle: async () => {},
    lifecycle: session,
    buildCheckpoint: async (): Promise<CheckpointContract[]> => [],
  }),
).toEqualTypeOf<Promise<{ completed: boolean; cycles: number }>>();

// A delivery is handled with the webhook's own adapter only: another one cannot check it.
const webhooks = durableStreamsWebhookAdapter({ jwksUrl: "http://127.0.0.1:1/jwks.json" });
const request = new Request("http://127.0.0.1:1/wake");
void handleDurableStreamsWake({
  request,
  adapter: webhooks,
  mode: { type: "ack-immediate", status: 200 },
  run: async (wake, { signal }) => {
    expectTypeOf(wake.generation).toEqualTypeOf<number>();
    expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
  },
});
// @ts-expect-error: not a webhook's adapter.
void handleDurableStreamsWake({ request, adapter: alarms, run: async () => {} });
// @ts-expect-error: no such status.
export const badMode: WebhookExecutionMode = { type: "ack-immediate", status: 500 };

// A job's payload is typed.
const jobs = createCollection(
  logCollectionOptions<QueueJob<{ to: string }>>({ log: openLocalLog(), name: "jobs", getKey: (job) => job.id }),
);
runQueueWorker({
  collection: jobs,
  run: async (_session, job) => {
    expectTypeOf(job.payload).toEqualTypeOf<{ to: string }>();
  },
});
expectTypeOf(newJob({ to: "ada" })).toEqualTypeOf<QueueJob<{ to: string }>>();
