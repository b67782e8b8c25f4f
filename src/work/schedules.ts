import { errorText, PerdureError } from "../base/error.ts";
import { namesOf, refuseUnknown } from "../base/known-options.ts";
import { readStored } from "../store/damaged.ts";
import type { ScheduleRow } from "../store/schedule.ts";
import {
  countWaiting,
  deleteSchedule,
  dueSchedules,
  failSchedule,
  findSameSchedule,
  finishSchedule,
  insertSchedule,
  listSchedules,
  nextScheduleAt,
  readSchedule,
  rearmSchedule,
  releaseSchedules,
  retrySchedule,
  startSchedule,
} from "../store/schedule.ts";
import { callMethod, mayTryAgain, parseRetry } from "./attempt.ts";
import type { Outcome } from "./callback.ts";
import { runCallback } from "./callback.ts";
import { DueWork } from "./due-work.ts";
import { backOffMs, resolveRetry } from "./retry.ts";
import type { When } from "./schedule-spec.ts";
import { isRecurring, nextOccurrence, toNewSchedule } from "./schedule-spec.ts";
import type { Schedule, ScheduleCriteria, ScheduleOptions, ScheduleRun } from "./schedule-view.ts";
import { toSchedule } from "./schedule-view.ts";
import type { Work, WorkContext } from "./work.ts";
import { MAX_FAILED_ROWS, MAX_RUNNING } from "./work.ts";

/** From how many waiting rows of one callback on it looks as if they pile up by mistake. */
const DUPLICATE_WARNING = 50;

const scheduleOptionsNames = namesOf<ScheduleOptions>()("retry idempotent timeZone");

/**
 * Calls of methods at a time. All is in rows: after the end of a process the next life carries on from them.
 * Each occurrence runs once, late if the host was down; what was missed meanwhile is not made up for. A
 * recurring one never overlaps itself: its next time is found when its run settles. A one-shot that has used
 * up its tries stays as `failed`; of a recurring one only the occurrence fails, and `error` says why.
 */
export class Schedules implements Work {
  readonly #context: WorkContext;
  readonly #work: DueWork<number>;
  readonly #warned = new Set<string>();

  constructor(context: WorkContext) {
    const { host } = context;
    this.#context = context;
    this.#work = new DueWork<number>({
      context,
      maxRunning: MAX_RUNNING,
      adopt: () => releaseSchedules(host),
      next: () => nextScheduleAt(host),
      due: (now, limit) => dueSchedules(host, now, limit),
      start: (seq, ended) => this.#start(seq, ended),
    });
  }

  /**
   * Stores a schedule; committed when this returns.
   * @throws PerdureError `bad_input`, `bad_config`, `not_found` (the method), `limit` (the payload)
   */
  add<T = unknown>(when: When, callback: string, payload?: T, options: ScheduleOptions = {}): Schedule<T> {
    refuseUnknown(options, scheduleOptionsNames, "schedule()");
    const { host } = this.#context;
    this.#work.adopt();
    if (typeof callback !== "string" || this.#context.method(callback) === undefined) {
      throw new PerdureError("not_found", `There is no method "${String(callback)}" to schedule on this agent.`);
    }
    const retry = JSON.stringify(resolveRetry(options.retry, this.#context.retry));
    const row = toNewSchedule({ when, callback, payload, timeZone: options.timeZone, retry, now: host.clock.now() });
    const recurring = isRecurring(row.type);
    if (options.idempotent ?? recurring) {
      // A one-shot that runs now may plan its successor; a recurring one that runs now will go on by itself.
      const same = findSameSchedule(host, row, recurring, recurring ? ["pending", "running"] : ["pending"]);
      if (same !== undefined) return toSchedule<T>(same);
    }
    const inserted = insertSchedule(host, { ...row, cause: this.#context.cause() });
    host.emit("schedule:created", { id: row.id, callback });
    this.#warnOfDuplicates(callback);
    this.#work.changed();
    return toSchedule<T>(inserted);
  }

  /** {@link Schedules.add}, and resolves once the schedule survives. */
  async schedule<T = unknown>(
    when: number | Date | string,
    callback: string,
    payload?: T,
    options?: ScheduleOptions,
  ): Promise<Schedule<T>> {
    const schedule = this.add(when, callback, payload, options);
    await this.#context.host.durable();
    return schedule;
  }

  /** Every `seconds`, the first time after one interval. Resolves once the schedule survives. */
  async scheduleEvery<T = unknown>(
    seconds: number,
    callback: string,
    payload?: T,
    options?: Omit<ScheduleOptions, "timeZone">,
  ): Promise<Schedule<T>> {
    const schedule = this.add({ everySeconds: seconds }, callback, payload, options);
    await this.#context.host.durable();
    return schedule;
  }

  getScheduleById(id: string): Schedule | undefined {
    const row = readSchedule(this.#context.host, id);
    return row === undefined ? undefined : this.#shown(row);
  }

  /** Matching schedules in the order of their next run. */
  listSchedules(criteria: ScheduleCriteria = {}): Schedule[] {
    const { timeRange, ...rest } = criteria;
    const filter = { ...rest, from: timeRange?.start?.getTime(), to: timeRange?.end?.getTime() };
    return listSchedules(this.#context.host, filter).map((row) => this.#shown(row));
  }

  #shown(row: ScheduleRow): Schedule {
    return toSchedule(row, (json) => readStored(this.#context.host, json, `the payload of the schedule ${row.id}`));
  }

  /** Removes a schedule; committed when this returns. A run under way finishes, but never runs again. */
  remove(id: string): boolean {
    this.#work.adopt();
    const row = deleteSchedule(this.#context.host, id);
    if (row === undefined) return false;
    this.#context.host.emit("schedule:cancelled", { id, callback: row.callback });
    this.#work.changed();
    return true;
  }

  /** {@link Schedules.remove}, and resolves once that survives. False when there is none. */
  async cancelSchedule(id: string): Promise<boolean> {
    const removed = this.remove(id);
    await this.#context.host.durable();
    return removed;
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

  #start(seq: number, ended: () => void): void {
    const { host } = this.#context;
    const row = startSchedule(host, seq, host.clock.now());
    if (row === undefined) return ended();
    runCallback(this.#context, () => this.#work.halted, {
      cause: row.cause,
      call: () => this.#call(row),
      store: (outcome) => this.#store(row, outcome),
      stored: (outcome) => {
        const { id, callback, starts: attempt } = row;
        const end = outcome.ok ? { ok: true } : { ok: false, error: errorText(outcome.error) };
        host.emit("schedule:ran", { id, callback, attempt, ...end });
        if (!outcome.ok) host.report(outcome.error, { stage: `schedule ${callback}` });
        ended();
      },
    });
  }

  #call(row: ScheduleRow): unknown {
    const run: ScheduleRun = { ...toSchedule(row), occurrence: `${row.id}:${row.due}`, attempt: row.starts };
    return callMethod(this.#context, row, run.payload, run);
  }

  #store(row: ScheduleRow, outcome: Outcome): void {
    const { host } = this.#context;
    const now = host.clock.now();
    const error = outcome.ok ? null : errorText(outcome.error);
    if (error !== null && mayTryAgain(row)) {
      return retrySchedule(host, row, now + backOffMs(row.attempts + 1, parseRetry(row.retry)), error);
    }
    const next = isRecurring(row.type) ? nextOccurrence(row, now) : null;
    if (next !== null) rearmSchedule(host, row, next, error, now);
    else if (error === null) finishSchedule(host, row);
    else failSchedule(host, row, error, now, MAX_FAILED_ROWS);
  }

  /** Once per callback and life; a warning per row would be a second flood. */
  #warnOfDuplicates(callback: string): void {
    const { host } = this.#context;
    if (this.#warned.has(callback) || countWaiting(host, callback, DUPLICATE_WARNING) < DUPLICATE_WARNING) return;
    this.#warned.add(callback);
    host.emit("schedule:duplicate_warning", { callback, count: countWaiting(host, callback, -1) });
  }
}
