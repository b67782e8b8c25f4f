import { errorText, PerdureError } from "../base/error.ts";
import type { DueRow, DueTable, MethodRow } from "../store/due-rows.ts";
import { runCallback } from "./callback.ts";
import { DueWork } from "./due-work.ts";
import { backOffMs, resolveRetry, type RetryOptions } from "./retry.ts";
import { MAX_FAILED_ROWS, MAX_INTERRUPTIONS, type WorkContext } from "./work.ts";

/** For a row whose own cannot be read: what fails then is not tried again, and stays as failed. */
const ONE_TRY: Required<RetryOptions> = { maxAttempts: 1, baseDelayMs: 1_000, maxDelayMs: 1_000 };

/** Retry options as a row holds them: resolved and checked when it was written. */
export function parseRetry(json: string): Required<RetryOptions> {
  try {
    return JSON.parse(json) as Required<RetryOptions>;
  } catch {
    return ONE_TRY;
  }
}

/** Work that calls methods of the agent, by rows that name them: schedules and the queue. */
export abstract class MethodWork<Row extends MethodRow> extends DueWork<number> {
  readonly #kind: "schedule" | "queue";
  readonly #table: DueTable<Row, number>;

  constructor(context: WorkContext, kind: "schedule" | "queue", table: DueTable<Row, number>, maxRunning?: number) {
    super(context, maxRunning);
    this.#kind = kind;
    this.#table = table;
  }

  /** What a method gets beside the payload of its row. */
  protected abstract toRun(row: Row): { readonly payload: unknown };
  /** The row after its last try; undefined: it goes. @param error why that failed, or null */
  protected abstract afterLast(row: Row, error: string | null, now: number): Partial<Row> | undefined;
  /** Before rows that ran wait again, in the same commit. */
  protected beforeWaiting?(): void;

  /** @throws PerdureError `not_found` when the agent has no such method; `bad_config` for retries that cannot work */
  protected accept(callback: string, retry: RetryOptions | undefined): string {
    this.adopt();
    if (typeof callback !== "string" || this.context.method(callback) === undefined) {
      throw new PerdureError("not_found", `There is no method "${String(callback)}" to ${this.#kind} on this agent.`);
    }
    return JSON.stringify(resolveRetry(retry, this.context.retry));
  }

  protected takeOver(): void {
    this.#table.release(this.context.host, () => this.beforeWaiting?.());
  }

  protected waiting(limit: number) {
    return this.#table.waiting(this.context.host, limit);
  }

  protected start(seq: number, ended: () => void): void {
    const { host } = this.context;
    const row = this.#table.start(host, seq, host.clock.now());
    if (row === undefined) return ended();
    const { id, callback, starts: attempt, cause } = row;
    runCallback(this.context, () => this.halted, {
      cause,
      call: () => {
        if (wasCutTooOften(row)) throw cutTooOften(callback);
        const run = this.toRun(row);
        const method = this.context.method(callback);
        if (method !== undefined) return method(run.payload, run);
        throw new PerdureError("not_found", `This agent no longer has a method "${callback}".`);
      },
      store: (outcome) => this.#store(row, outcome.ok ? null : errorText(outcome.error)),
      stored: (outcome) => {
        const end = outcome.ok ? { ok: true } : { ok: false, error: errorText(outcome.error) };
        host.emit(`${this.#kind}:ran`, { id, callback, attempt, ...end });
        if (!outcome.ok) host.report(outcome.error, { stage: `${this.#kind} ${callback}` });
        ended();
      },
    });
  }

  #store(row: Row, error: string | null): void {
    const { host } = this.context;
    const now = host.clock.now();
    const attempts = row.attempts + 1;
    const retry = parseRetry(row.retry);
    const change = (changes: Partial<MethodRow>) => this.#table.change(host, row, changes as Partial<Row>);
    if (error !== null && attempts < retry.maxAttempts && !wasCutTooOften(row)) {
      this.beforeWaiting?.();
      change({ status: "pending", at: now + backOffMs(attempts, retry), attempts, error });
      return;
    }
    const next = this.afterLast(row, error, now);
    if (next !== undefined)
      change({ ...next, status: "pending", attempts: 0, starts: 0, error, failedAt: error === null ? null : now });
    else if (error === null) this.#table.remove(host, row);
    else {
      change({ status: "failed", attempts, error, failedAt: now });
      this.#table.keepFailed(host, MAX_FAILED_ROWS);
    }
  }
}

/** Whether so many processes ended under it that it is to blame. */
export function wasCutTooOften(row: Pick<DueRow, "attempts" | "starts">): boolean {
  return row.starts - row.attempts > MAX_INTERRUPTIONS;
}

/** What such work fails with. */
export function cutTooOften(what: string): PerdureError {
  return new PerdureError(
    "limit",
    `The process ended ${MAX_INTERRUPTIONS} times while "${what}" ran. It will not start again.`,
  );
}
