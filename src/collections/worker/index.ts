/** `perdure/collections/worker`: what runs work elsewhere: claims, wakes, queues. Docs: docs/collections-runner.md. */
export type { ClaimBeat, ClaimRow } from "../contract.ts";
export { catchUp, checkpointsOf, compareCursors, producerOf } from "./checkpoint.ts";
export type { CompareCursors } from "./checkpoint.ts";
export { generationClaimId, runnerClaimId, toolClaimId } from "./claim.ts";
export type { AcquireOptions, Acquired, ClaimView, DeadLetter, Hold, HoldOptions } from "./claim.ts";
export type { ClaimsOptions } from "./claims.ts";
export { parseWakePayload } from "./control.ts";
export type { DurableStreamsWakeStream } from "./control.ts";
export type { RunnerClaim, RunnerState } from "./lifecycle.ts";
export { pullWakeAdapter, runPullWakeWorker } from "./pull-worker.ts";
export type { PullWake, PullWakeWorker } from "./pull-worker.ts";
export { newJob, runQueueWorker, tableQueueAdapter } from "./queue.ts";
export type { QueueJob, QueueWake, QueueWorker, TableQueueAdapter } from "./queue.ts";
export { ensureWakeSubscription, keepWakeSubscription, requestWake } from "./subscription.ts";
export type { KeptSubscription } from "./subscription.ts";
export type { DurableStreamsWebhookAdapter } from "./webhook.ts";
