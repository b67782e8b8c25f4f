import { errorText, PerdureError } from "../base/error.ts";
import { namesOf, refuseUnknown } from "../base/known-options.ts";
import { newId } from "../base/id.ts";
import type { QueueRow, QueueStatus } from "../store/queue.ts";
import {
  deleteQueueItem,
  deleteQueueItems,
  failQueueItem,
  finishQueueItem,
  headOfQueue,
  listQueueItems,
  putQueueItem,
  readQueueItem,
  releaseQueueItems,
  retryQueueItem,
  startQueueItem,
} from "../store/queue.ts";
import { readStored } from "../store/damaged.ts";
import { callMethod, mayTryAgain, parseRetry } from "./attempt.ts";
import type { Outcome } from "./callback.ts";
import { runCallback } from "./callback.ts";
import { DueWork } from "./due-work.ts";
import { decodeJson, encodeJson } from "./json.ts";
import type { RetryOptions } from "./retry.ts";
import { backOffMs, resolveRetry } from "./retry.ts";
import type { Work, WorkContext } from "./work.ts";
import { MAX_FAILED_ROWS } from "./work.ts";

/** One item as users see it. */
export interface QueueItem<T = unknown> {
  readonly id: string;
  /** The method that it calls. */
  readonly callback: string;
  readonly payload: T;
  /** In whole seconds since the epoch. */
  readonly createdAt: number;
  readonly retry: Required<RetryOptions>;
  readonly status: QueueStatus;
  /** Why the last try failed. */
  readonly error?: string;
  /** When it was given up. Milliseconds since the epoch. */
  readonly failedAt?: number;
}

/** What a callback gets beside its payload. */
export interface QueueRun<T = unknown> extends QueueItem<T> {
  /** The same for every try of the item, different for one that replaces it: a key to make effects idempotent with. */
  readonly occurrence: string;
  /** From 1; counts tries that threw and tries that the end of a process cut. */
  readonly attempt: number;
}

/** How a call is queued and run. */
export interface QueueOptions {
  readonly retry?: RetryOptions;
  /** An item that waits under this id is replaced and keeps its place. Random by default. */
  readonly id?: string;
}

const queueOptionsNames = namesOf<QueueOptions>()("retry id");

export interface QueueCriteria {
  /** What waits or runs by default. */
  readonly status?: QueueStatus | readonly QueueStatus[];
  readonly callback?: string;
  readonly limit?: number;
}

const OPEN: readonly QueueStatus[] = ["pending", "running"];

/**
 * Calls of methods one after the other, in the order in which they were queued, starting at once. An item that
 * backs off holds up those behind it. One that has used up its tries stays as `failed` and lets the next pass.
 */
export class Queue implements Work {
  readonly #context: WorkContext;
  readonly #work: DueWork<number>;

  constructor(context: WorkContext) {
    const { host } = context;
    this.#context = context;
    this.#work = new DueWork<number>({
      context,
      maxRunning: 1,
      adopt: () => releaseQueueItems(host),
      next: () => headOfQueue(host)?.at ?? null,
      due: (now) => {
        const head = headOfQueue(host);
        return head === undefined || head.at > now ? [] : [head.seq];
      },
      start: (seq, ended) => this.#start(seq, ended),
    });
  }

  /**
   * Stores an item; committed when this returns.
   * @throws PerdureError `bad_input`, `bad_config`, `not_found` (the method), `limit` (the payload)
   */
  add(callback: string, payload?: unknown, options: QueueOptions = {}): string {
    refuseUnknown(options, queueOptionsNames, "queue()");
    const { host } = this.#context;
    this.#work.adopt();
    if (typeof callback !== "string" || this.#context.method(callback) === undefined) {
      throw new PerdureError("not_found", `There is no method "${String(callback)}" to queue on this agent.`);
    }
    const id = options.id ?? newId();
    if (typeof id !== "string" || id === "")
      throw new PerdureError("bad_input", "The id of an item must be some text.");
    putQueueItem(host, {
      id,
      occurrence: newId(),
      callback,
      payload: encodeJson(payload, `The payload for "${callback}"`),
      retry: JSON.stringify(resolveRetry(options.retry, this.#context.retry)),
      createdAt: host.clock.now(),
      cause: this.#context.cause(),
    });
    host.emit("queue:added", { id, callback });
    this.#work.changed();
    this.#work.runSoon();
    return id;
  }

  /** {@link Queue.add}, and resolves once the item survives. */
  async queue(callback: string, payload?: unknown, options?: QueueOptions): Promise<string> {
    const id = this.add(callback, payload, options);
    await this.#context.host.durable();
    return id;
  }

  /** Removes what has this id. A run under way finishes, but never runs again. False when there was none. */
  async dequeue(id: string): Promise<boolean> {
    return (await this.#remove(() => deleteQueueItem(this.#context.host, id))) > 0;
  }

  /** Removes all that waits or runs. @returns how many */
  dequeueAll(): Promise<number> {
    return this.#remove(() => deleteQueueItems(this.#context.host));
  }

  /** Removes all that waits for, or runs, this method. @returns how many */
  dequeueAllByCallback(callback: string): Promise<number> {
    return this.#remove(() => deleteQueueItems(this.#context.host, callback));
  }

  /** The newest item with this id, also if it has failed. */
  getQueue<T = unknown>(id: string): QueueItem<T> | undefined {
    const row = readQueueItem(this.#context.host, id);
    return row === undefined ? undefined : this.#shown<T>(row);
  }

  /** What waits or runs and has a payload in which `key` is `value`, compared as text. */
  getQueues<T = unknown>(key: string, value: string): QueueItem<T>[] {
    const field = { key: String(key), value: String(value) };
    return listQueueItems(this.#context.host, { statuses: OPEN, field }).map((row) => this.#shown<T>(row));
  }

  /** Matching items in the order of the queue. */
  listQueue(criteria: QueueCriteria = {}): QueueItem[] {
    const { status = OPEN, callback, limit } = criteria;
    const statuses = typeof status === "string" ? [status] : status;
    return listQueueItems(this.#context.host, { statuses, callback, limit }).map((row) => this.#shown(row));
  }

  /** A list is shown without the payloads that cannot be read. */
  #shown<T = unknown>(row: QueueRow): QueueItem<T> {
    return toItem<T>(row, (json) => readStored(this.#context.host, json, `the payload of the queued call ${row.id}`));
  }

  next(): number | null {
    return this.#work.next();
  }

  active(): boolean {
    return this.#work.active();
  }

  runDue(): void {
    this.#work.runDue();
  }

  halt(reason: unknown): void {
    this.#work.halt(reason);
  }

  async #remove(remove: () => number): Promise<number> {
    this.#work.adopt();
    const removed = remove();
    if (removed > 0) this.#work.changed();
    // The new head may be due now where the old one still backed off.
    if (removed > 0) this.#work.runSoon();
    await this.#context.host.durable();
    return removed;
  }

  #start(seq: number, ended: () => void): void {
    const { host } = this.#context;
    const row = startQueueItem(host, seq);
    if (row === undefined) return ended();
    runCallback(this.#context, () => this.#work.halted, {
      cause: row.cause,
      call: () => {
        const run: QueueRun = { ...toItem(row), occurrence: row.occurrence, attempt: row.starts };
        return callMethod(this.#context, row, run.payload, run);
      },
      store: (outcome) => this.#store(row, outcome),
      stored: (outcome) => {
        const { id, callback, starts: attempt } = row;
        const end = outcome.ok ? { ok: true } : { ok: false, error: errorText(outcome.error) };
        host.emit("queue:ran", { id, callback, attempt, ...end });
        if (!outcome.ok) host.report(outcome.error, { stage: `queue ${callback}` });
        ended();
      },
    });
  }

  #store(row: QueueRow, outcome: Outcome): void {
    const { host } = this.#context;
    if (outcome.ok) return finishQueueItem(host, row);
    const now = host.clock.now();
    const error = errorText(outcome.error);
    if (!mayTryAgain(row)) return failQueueItem(host, row, error, now, MAX_FAILED_ROWS);
    retryQueueItem(host, row, now + backOffMs(row.attempts + 1, parseRetry(row.retry)), error);
  }
}

function toItem<T = unknown>(row: QueueRow, read = decodeJson): QueueItem<T> {
  return {
    id: row.id,
    callback: row.callback,
    // What users put in under `T` is what comes out; JSON is between the two.
    payload: read(row.payload) as T,
    createdAt: Math.floor(row.createdAt / 1000),
    retry: parseRetry(row.retry),
    status: row.status,
    error: row.error ?? undefined,
    failedAt: row.failedAt ?? undefined,
  };
}
