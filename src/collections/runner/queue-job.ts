import { newId } from "../../base/id.ts";

/** A job of a queue that is a collection. */
export interface QueueJob<TPayload = unknown> {
  id: string;
  payload: TPayload;
  /** `queued` → `running` → `done`, or `failed` after its last attempt. */
  status: "queued" | "running" | "done" | "failed";
  /** How often it was begun. */
  attempts: number;
  /** Grows by one with each claim: the epoch of the claim's writer. */
  fence: number;
  /** Who has it. */
  owner?: string;
  /** Grows with each heartbeat, so that others see life without comparing clocks. */
  beat: number;
  /** How long the claim holds without a heartbeat. */
  leaseMs?: number;
  /** How far its sources were consumed: cursors by source. */
  checkpoints?: Record<string, string>;
  /** Its last failure. */
  error?: string;
}

/** A new job, to be inserted into the queue. */
export function newJob<TPayload>(payload: TPayload, id: string = newId("job")): QueueJob<TPayload> {
  return { id, payload, status: "queued", attempts: 0, fence: 0, beat: 0 };
}
