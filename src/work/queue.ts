import { PerdureError } from "../base/error.ts";
import { namesOf, refuseUnknown } from "../base/known-options.ts";
import { newId } from "../base/id.ts";
import {
  deleteQueueItem,
  deleteQueueItems,
  dropReplaced,
  listQueueItems,
  putQueueItem,
  type QueueRow,
  type QueueStatus,
  queueTable,
} from "../store/queue.ts";
import { readStored } from "../store/damaged.ts";
import { decodeJson, encodeJson } from "../base/json.ts";
import { MethodWork, parseRetry } from "./method-work.ts";
import type { RetryOptions } from "./retry.ts";
import type { WorkContext } from "./work.ts";

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

interface QueueCriteria {
  /** What waits or runs by default. */
  readonly status?: QueueStatus | readonly QueueStatus[];
  readonly callback?: string;
  readonly limit?: number;
}

const OPEN: readonly QueueStatus[] = ["pending", "running"];

/** Calls of methods, one after the other, in order. An item that backs off holds up those behind it; a `failed` one does not. */
export class Queue extends MethodWork<QueueRow> {
  constructor(context: WorkContext) {
    super(context, "queue", queueTable, 1);
  }

  /** Stores an item; committed when this returns. @throws PerdureError `bad_input`, `bad_config`, `not_found`, `limit` */
  add(callback: string, payload?: unknown, options: QueueOptions = {}): string {
    refuseUnknown(options, queueOptionsNames, "queue()");
    const { host } = this.context;
    const retry = this.accept(callback, options.retry);
    const id = options.id ?? newId();
    if (typeof id !== "string" || id === "")
      throw new PerdureError("bad_input", "The id of an item must be a non-empty string.");
    putQueueItem(host, {
      id,
      occurrence: newId(),
      callback,
      payload: encodeJson(payload, `The payload for "${callback}"`),
      retry,
      createdAt: host.clock.now(),
      cause: this.context.cause(),
    });
    host.emit("queue:added", { id, callback });
    this.changed();
    this.runSoon();
    return id;
  }

  /** {@link Queue.add}, and resolves once the item survives. */
  async queue(callback: string, payload?: unknown, options?: QueueOptions): Promise<string> {
    const id = this.add(callback, payload, options);
    await this.context.host.durable();
    return id;
  }

  /** Removes what has this id. A run under way finishes, but never runs again. False when there was none. */
  async dequeue(id: string): Promise<boolean> {
    return (await this.#remove(() => deleteQueueItem(this.context.host, id))) > 0;
  }

  /** Removes all that waits or runs. @returns how many */
  dequeueAll(): Promise<number> {
    return this.#remove(() => deleteQueueItems(this.context.host));
  }

  /** Removes all that waits for, or runs, this method. @returns how many */
  dequeueAllByCallback(callback: string): Promise<number> {
    return this.#remove(() => deleteQueueItems(this.context.host, callback));
  }

  /** The newest item with this id, even if it has failed. */
  getQueue<T = unknown>(id: string): QueueItem<T> | undefined {
    const row = queueTable.find(this.context.host, "id", id);
    return row === undefined ? undefined : this.#shown<T>(row);
  }

  /** What waits or runs and has a payload in which `key` is `value`, compared as text. */
  getQueues<T = unknown>(key: string, value: string): QueueItem<T>[] {
    const field = { key: String(key), value: String(value) };
    return listQueueItems(this.context.host, { statuses: OPEN, field }).map((row) => this.#shown<T>(row));
  }

  /** Matching items in the order of the queue. */
  listQueue(criteria: QueueCriteria = {}): QueueItem[] {
    const { status = OPEN, callback, limit } = criteria;
    const statuses = typeof status === "string" ? [status] : status;
    return listQueueItems(this.context.host, { statuses, callback, limit }).map((row) => this.#shown(row));
  }

  /** A list is shown without the payloads that cannot be read. */
  #shown<T = unknown>(row: QueueRow): QueueItem<T> {
    return toItem<T>(row, (json) => readStored(this.context.host, json, `the payload of the queued call ${row.id}`));
  }

  async #remove(remove: () => number): Promise<number> {
    this.adopt();
    const removed = remove();
    if (removed > 0) this.changed();
    // The new head may be due now where the old one still backed off.
    if (removed > 0) this.runSoon();
    await this.context.host.durable();
    return removed;
  }

  protected toRun(row: QueueRow): QueueRun {
    return { ...toItem(row), occurrence: row.occurrence, attempt: row.starts };
  }

  protected afterLast(): undefined {}

  protected override beforeWaiting(): void {
    dropReplaced(this.context.host);
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
