import { PerdureError } from "../../base/error.ts";
import type { Pump, PumpOutcome } from "../pump.ts";
import { createPump } from "../pump.ts";
import { rowsOf } from "../rows.ts";
import type { RunnerSession } from "./lifecycle.ts";
import { followOpenJobs } from "./open-jobs.ts";
import type { QueueWake, TableQueueOptions } from "./queue-adapter.ts";
import { tableQueueAdapter } from "./queue-adapter.ts";
import type { QueueJob } from "./queue-job.ts";
import { runWithLifecycle } from "./run.ts";

/** What `runQueueWorker` needs to know. */
export interface QueueWorkerOptions<TPayload> extends TableQueueOptions<TPayload> {
  /**
   * Does a job. When it returns without `session.complete`, the job is done; when it throws, it is tried again up to
   * `maxAttempts` times.
   */
  readonly run: (session: RunnerSession<QueueWake>, job: QueueJob<TPayload>) => Promise<unknown>;
  /** How many jobs at once. Default 1. */
  readonly concurrency?: number;
  /** Told of each failure. Must not throw. Default: the console. */
  readonly onError?: (error: unknown) => void;
}

/** A worker of a queue. */
export interface QueueWorker extends AsyncDisposable {
  readonly owner: string;
  /** Resolves when there is nothing that this worker can do now. */
  idle(): Promise<void>;
  /** Takes nothing more, tells what runs to stop, waits for it, and puts unfinished jobs back. */
  stop(): Promise<void>;
}

/** A claim that could not be written is tried for again as long as there is the job: nobody else may be there. */
const UNREACHED = { maxAttempts: Number.POSITIVE_INFINITY, delayMs: 200, maxDelayMs: 30_000 };

/** Works on the jobs of a queue, oldest first, until it is stopped. */
export function runQueueWorker<TPayload>(options: QueueWorkerOptions<TPayload>): QueueWorker {
  const rows = rowsOf(options.collection);
  const adapter = tableQueueAdapter(options);
  const report = options.onError ?? ((error: unknown) => console.error(error));
  const mine = new Set<string>();

  const one = async (job: QueueJob<TPayload>, signal: AbortSignal): Promise<PumpOutcome> => {
    const left = adapter.expiresInMs(job.id);
    if (left !== undefined && left > 0) return { later: true, ms: left };
    let began = false;
    mine.add(job.id);
    try {
      await runWithLifecycle({ id: job.id }, adapter, (session) => ((began = true), perform(session, job)), { signal });
    } catch (error) {
      if (began && !signal.aborted) report(error);
      if (!began && !PerdureError.is(error, "fenced")) throw error;
    } finally {
      mine.delete(job.id);
    }
    return "done";
  };
  const perform = async (session: RunnerSession<QueueWake>, job: QueueJob<TPayload>) => {
    await options.run(session, rows.get(job.id) ?? job);
    if (!session.ended && !session.signal.aborted) await session.complete({ done: true });
  };
  const pump: Pump = createPump({
    read: () => jobs.read().filter(({ id }) => !mine.has(id)),
    // Each claim and each state of it is work of its own; a heartbeat is not.
    idOf: (job) => `${job.id}:${job.fence}:${job.status}`,
    run: (job, { signal }) => one(job, signal),
    giveUp: (_job, error) => report(error),
    retry: UNREACHED,
    concurrency: options.concurrency ?? 1,
    onError: report,
  });
  const jobs = followOpenJobs(options.collection, () => pump.wake());
  rows.ready().then(() => pump.wake(), report);
  const stop = async () => {
    jobs.stop();
    await pump.dispose();
  };
  return {
    owner: adapter.owner,
    idle: async () => {
      await rows.ready();
      await pump.idle();
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
