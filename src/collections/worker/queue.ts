import { PerdureError } from "../../base/error.ts";
import { reporter, UNREACHED } from "../retry.ts";
import { newId } from "../../base/id.ts";
import { indexRows } from "../log/row-index.ts";
import { rowsOf, type RowCollection, type Rows } from "../log/rows.ts";
import { compareCursors, goesBack, type CompareCursors } from "./checkpoint.ts";
import { BEATS_PER_LEASE, runWithLifecycle } from "./lifecycle.ts";
import type { RunnerClaim, RunnerLifecycleAdapter, RunnerSession, RunnerState } from "./lifecycle.ts";
import { createPump, type Pump, type PumpOutcome } from "./pump.ts";

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

/** Which job. */
export interface QueueWake {
  readonly id: string;
}

interface TableQueueOptions<TPayload = unknown> {
  /** The queue. On a log, any number of processes may work on it; any other collection serves one process. */
  readonly collection: RowCollection<QueueJob<TPayload>>;
  /** This worker's name. Default: a new one. */
  readonly owner?: string;
  /** How long a claim holds without a heartbeat. Default 30 s. */
  readonly leaseMs?: number;
  /** How often a job is begun before it is `failed` for good; those that died on the way count. Default 3. */
  readonly maxAttempts?: number;
  /** The order of the cursors of its sources. Default: numbers by their value, others as texts. */
  readonly compareCursors?: CompareCursors;
}

/** A queue's adapter. */
export interface TableQueueAdapter extends RunnerLifecycleAdapter<QueueWake> {
  readonly owner: string;
  /** How long until a running job may be taken over, as far as this process has seen; 0: now. Undefined: not running. */
  expiresInMs(id: string): number | undefined;
}

const DEFAULT_LEASE_MS = 30_000;
const DEFAULT_ATTEMPTS = 3;

/**
 * Jobs in a collection, with no server but the one that keeps the rows. A claim is a write that holds only if the job is as it
 * was seen, so one worker gets it. When this process sees a heartbeat stand still for its lease, the job may be taken over;
 * `fence` changes, and all that the old worker writes is `fenced`.
 */
export function tableQueueAdapter<TPayload>(options: TableQueueOptions<TPayload>): TableQueueAdapter {
  return new QueueAdapter(options);
}

class QueueAdapter<TPayload> implements TableQueueAdapter {
  readonly owner: string;
  readonly leaseMs: number;
  readonly heartbeatIntervalMs: number;
  readonly compareCursors: CompareCursors;
  readonly #rows: Rows<QueueJob<TPayload>>;
  readonly #maxAttempts: number;
  /** When this process saw a claim's heartbeat for the first time. */
  readonly #seen = new Map<string, { mark: string; at: number }>();

  constructor(options: TableQueueOptions<TPayload>) {
    this.#rows = rowsOf(options.collection);
    this.owner = options.owner ?? newId("worker");
    this.leaseMs = options.leaseMs ?? DEFAULT_LEASE_MS;
    this.heartbeatIntervalMs = this.leaseMs / BEATS_PER_LEASE;
    this.compareCursors = options.compareCursors ?? compareCursors;
    this.#maxAttempts = options.maxAttempts ?? DEFAULT_ATTEMPTS;
  }

  expiresInMs(id: string): number | undefined {
    const job = this.#rows.get(id);
    if (job?.status !== "running") {
      this.#seen.delete(id);
      return undefined;
    }
    const mark = `${job.fence}:${job.beat}`;
    const now = performance.now();
    const known = this.#seen.get(id);
    if (known === undefined) this.#forgetEnded();
    if (known?.mark !== mark) this.#seen.set(id, { mark, at: now });
    const since = known?.mark === mark ? known.at : now;
    return Math.max(0, since + (job.leaseMs ?? this.leaseMs) - now);
  }

  /** Nobody asks about jobs again that others have ended: there are never more than run, and one. */
  #forgetEnded(): void {
    for (const id of this.#seen.keys()) if (this.#rows.get(id)?.status !== "running") this.#seen.delete(id);
  }

  async claimWake({ id }: QueueWake): Promise<RunnerClaim> {
    await this.#rows.ready();
    let fence = 0;
    const claimed = await this.#rows.update(id, (job) => {
      const isFree = job.status === "queued" || (job.status === "running" && this.expiresInMs(id) === 0);
      if (!isFree) return false;
      fence = job.fence + 1;
      if (job.attempts >= this.#maxAttempts) {
        // It died each time: nobody was left to say so.
        Object.assign(job, { status: "failed", fence, error: job.error ?? "Its workers died." });
        return true;
      }
      const attempts = job.attempts + 1;
      Object.assign(job, { status: "running", owner: this.owner, fence, attempts, beat: 0, leaseMs: this.leaseMs });
      return true;
    });
    const job = this.#rows.get(id);
    if (!claimed || job?.status !== "running" || job.fence !== fence) throw this.#refused(id, job);
    this.#seen.delete(id);
    return { fenceToken: String(fence), leaseMs: this.leaseMs };
  }

  async heartbeat(state: RunnerState<QueueWake>): Promise<void> {
    await this.#change(state, (job) => void (job.beat += 1));
  }

  async checkpoint(checkpoints: { source: string; cursor: string }[], state: RunnerState<QueueWake>): Promise<void> {
    await this.#change(state, (job) => {
      const kept = { ...job.checkpoints };
      for (const { source, cursor } of checkpoints) {
        const before = kept[source];
        if (before !== undefined && this.compareCursors(cursor, before, source) < 0)
          throw goesBack(source, before, cursor);
        kept[source] = cursor;
      }
      job.checkpoints = kept;
    });
  }

  async complete(state: RunnerState<QueueWake>, { done }: { readonly done: boolean }): Promise<void> {
    await this.#change(state, (job) => {
      job.status = done ? "done" : "queued";
      // What has come this far without a failure is at no attempt's end.
      if (!done) job.attempts -= 1;
      delete job.owner;
    });
  }

  async fail(state: RunnerState<QueueWake>, error: Error): Promise<void> {
    await this.#change(state, (job) => {
      job.status = job.attempts >= this.#maxAttempts ? "failed" : "queued";
      job.error = error.message;
      delete job.owner;
    });
  }

  /** Changes the job if it is still this claim's. */
  async #change({ wake, fenceToken }: RunnerState<QueueWake>, work: (job: QueueJob<TPayload>) => void) {
    const isMine = (job: QueueJob<TPayload>) => job.status === "running" && String(job.fence) === fenceToken;
    const changed = await this.#rows.update(wake.id, (job) => (isMine(job) ? work(job) : false));
    if (!changed) throw this.#refused(wake.id, this.#rows.get(wake.id));
  }

  #refused(id: string, job: QueueJob<TPayload> | undefined): PerdureError {
    if (job === undefined) return new PerdureError("fenced", `There is no job "${id}" (any more).`);
    const who = job.status === "running" ? `"${job.owner}" works on it` : `it is ${job.status}`;
    return new PerdureError("fenced", `The job "${id}" is not this worker's: ${who}.`);
  }
}

/** What jobs that are not over are filed under. */
const OPEN = "open";

interface QueueWorkerOptions<TPayload> extends TableQueueOptions<TPayload> {
  /** Does a job. Returning without `session.complete` means done; a throw is retried, up to `maxAttempts` times. */
  readonly run: (session: RunnerSession<QueueWake>, job: QueueJob<TPayload>) => Promise<unknown>;
  /** How many jobs at once. Default 1. */
  readonly concurrency?: number;
  /** Told of each failure. Default: the console. */
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

/** Works on the jobs of a queue, oldest first, until it is stopped. */
export function runQueueWorker<TPayload>(options: QueueWorkerOptions<TPayload>): QueueWorker {
  const rows = rowsOf(options.collection);
  const adapter = tableQueueAdapter(options);
  const report = reporter(options.onError);
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
    read: () => jobs.rows(OPEN).filter(({ id }) => !mine.has(id)),
    // Each claim and each state of it is work of its own; a heartbeat is not.
    idOf: (job) => `${job.id}:${job.fence}:${job.status}`,
    run: (job, { signal }) => one(job, signal),
    // A claim that could not be written is tried for again as long as there is the job: nobody else may be there.
    retry: UNREACHED,
    concurrency: options.concurrency ?? 1,
    onError: report,
  });
  const isOpen = ({ status }: QueueJob) => status === "queued" || status === "running";
  const jobs = indexRows(
    options.collection,
    (job) => (isOpen(job) ? OPEN : undefined),
    () => pump.wake(),
  );
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
