import { namesOf, refuseUnknown } from "../base/known-options.ts";
import { readStored } from "../store/damaged.ts";
import {
  countWaiting,
  deleteSchedule,
  findSameSchedule,
  insertSchedule,
  listSchedules,
  type ScheduleRow,
  scheduleTable,
} from "../store/schedule.ts";
import { MethodWork } from "./method-work.ts";
import { isRecurring, nextOccurrence, toNewSchedule, type When } from "./schedule-spec.ts";
import {
  type Schedule,
  type ScheduleCriteria,
  type ScheduleOptions,
  type ScheduleRun,
  toSchedule,
} from "./schedule-view.ts";
import type { WorkContext } from "./work.ts";

/** From how many waiting rows of one callback on it looks as if they pile up by mistake. */
const DUPLICATE_WARNING = 50;

const scheduleOptionsNames = namesOf<ScheduleOptions>()("retry idempotent timeZone");

/**
 * Calls of methods at a time. What is due is found by `due-work.ts` and run by `method-work.ts`. All is in rows: after the end of a process the next life carries on from them.
 * Each occurrence runs once, late if the host was down; what was missed meanwhile is not made up for. A
 * recurring one never overlaps itself: its next time is found when its run settles. A one-shot that has used
 * up its tries stays as `failed`; of a recurring one only the occurrence fails, and `error` says why.
 */
export class Schedules extends MethodWork<ScheduleRow> {
  readonly #warned = new Set<string>();

  constructor(context: WorkContext) {
    super(context, "schedule", scheduleTable);
  }

  /**
   * Stores a schedule; committed when this returns.
   * @throws PerdureError `bad_input`, `bad_config`, `not_found` (the method), `limit` (the payload)
   */
  add<T = unknown>(when: When, callback: string, payload?: T, options: ScheduleOptions = {}): Schedule<T> {
    refuseUnknown(options, scheduleOptionsNames, "schedule()");
    const { host } = this.context;
    const retry = this.accept(callback, options.retry);
    const row = toNewSchedule({ when, callback, payload, timeZone: options.timeZone, retry, now: host.clock.now() });
    const recurring = isRecurring(row.type);
    if (options.idempotent ?? recurring) {
      // A one-shot that runs now may plan its successor; a recurring one that runs now will go on by itself.
      const same = findSameSchedule(host, row, recurring, recurring ? ["pending", "running"] : ["pending"]);
      if (same !== undefined) return toSchedule<T>(same);
    }
    const inserted = insertSchedule(host, { ...row, cause: this.context.cause() });
    host.emit("schedule:created", { id: row.id, callback });
    this.#warnOfDuplicates(callback);
    this.changed();
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
    await this.context.host.durable();
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
    await this.context.host.durable();
    return schedule;
  }

  getScheduleById(id: string): Schedule | undefined {
    const row = scheduleTable.find(this.context.host, "id", id);
    return row === undefined ? undefined : this.#shown(row);
  }

  /** Matching schedules in the order of their next run. */
  listSchedules(criteria: ScheduleCriteria = {}): Schedule[] {
    const { timeRange, ...rest } = criteria;
    const filter = { ...rest, from: timeRange?.start?.getTime(), to: timeRange?.end?.getTime() };
    return listSchedules(this.context.host, filter).map((row) => this.#shown(row));
  }

  #shown(row: ScheduleRow): Schedule {
    return toSchedule(row, (json) => readStored(this.context.host, json, `the payload of the schedule ${row.id}`));
  }

  /** Removes a schedule; committed when this returns. A run under way finishes, but never runs again. */
  remove(id: string): boolean {
    this.adopt();
    const callback = deleteSchedule(this.context.host, id);
    if (callback === undefined) return false;
    this.context.host.emit("schedule:cancelled", { id, callback });
    this.changed();
    return true;
  }

  /** {@link Schedules.remove}, and resolves once that survives. False when there is none. */
  async cancelSchedule(id: string): Promise<boolean> {
    const removed = this.remove(id);
    await this.context.host.durable();
    return removed;
  }

  protected toRun(row: ScheduleRow): ScheduleRun {
    return { ...toSchedule(row), occurrence: `${row.id}:${row.due}`, attempt: row.starts };
  }

  protected afterLast(row: ScheduleRow, _error: string | null, now: number): Partial<ScheduleRow> | undefined {
    const due = isRecurring(row.type) ? nextOccurrence(row, now) : null;
    return due === null ? undefined : { due, at: due };
  }

  /** Once per callback and life; a warning per row would be a second flood. */
  #warnOfDuplicates(callback: string): void {
    const { host } = this.context;
    if (this.#warned.has(callback) || countWaiting(host, callback, DUPLICATE_WARNING) < DUPLICATE_WARNING) return;
    this.#warned.add(callback);
    host.emit("schedule:duplicate_warning", { callback, count: countWaiting(host, callback, -1) });
  }
}
