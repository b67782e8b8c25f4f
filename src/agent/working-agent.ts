import type {
  FiberContext,
  FiberInspection,
  FiberRecoveryContext,
  FiberRecoveryResult,
  StartFiberResult,
} from "../work/fiber-view.ts";
import type {
  DeleteFibersOptions,
  ListFibersOptions,
  SpawnFiberOptions,
  StartFiberOptions,
} from "../work/fiber-options.ts";
import type { QueueItem, QueueOptions } from "../work/queue.ts";
import { retry, type RetryCallOptions } from "../work/retry.ts";
import type { Schedule, ScheduleCriteria, ScheduleOptions } from "../work/schedule-view.ts";
import type { AgentEnv } from "../port.ts";
import { AgentBase } from "./agent-base.ts";
import { causeNow } from "./cause.ts";
import { runOutsideTurn } from "./context.ts";
import { parts } from "./parts.ts";

/** Work that outlives its caller: schedules, queue, fibers. See {@link Agent}. */
export class WorkingAgent<
  Env extends object = AgentEnv,
  State = unknown,
  Props extends object = object,
> extends AgentBase<Env, State, Props> {
  // Schedules

  /**
   * Calls a method later: after a number of seconds, at a date, or by a cron expression (UTC unless
   * `timeZone` is given). Resolves once the schedule survives. The method gets the payload and the run.
   * A cron schedule with the same method, expression and payload is not added twice; others only with
   * `idempotent: true`.
   * @throws PerdureError `bad_input`, `bad_config`, `not_found`
   */
  schedule<T = unknown>(
    when: number | Date | string,
    callback: keyof this & string,
    payload?: T,
    options?: ScheduleOptions,
  ): Promise<Schedule<T>> {
    return this[parts].schedules.schedule(when, callback, payload, options);
  }

  /** Calls a method every `seconds`, first after one interval. Safe to repeat, as in `onStart`. */
  scheduleEvery<T = unknown>(
    seconds: number,
    callback: keyof this & string,
    payload?: T,
    options?: Omit<ScheduleOptions, "timeZone">,
  ): Promise<Schedule<T>> {
    return this[parts].schedules.scheduleEvery(seconds, callback, payload, options);
  }

  getScheduleById(id: string): Schedule | undefined {
    return this[parts].schedules.getScheduleById(id);
  }

  /** Schedules that match, in the order of their next run. */
  listSchedules(criteria?: ScheduleCriteria): Schedule[] {
    return this[parts].schedules.listSchedules(criteria);
  }

  /** The same as {@link WorkingAgent.getScheduleById}. */
  getSchedule(id: string): Schedule | undefined {
    return this.getScheduleById(id);
  }

  /** The same as {@link WorkingAgent.listSchedules}. */
  getSchedules(criteria?: ScheduleCriteria): Schedule[] {
    return this.listSchedules(criteria);
  }

  /** Removes a schedule; a run under way finishes. False when there is none. */
  cancelSchedule(id: string): Promise<boolean> {
    return this[parts].schedules.cancelSchedule(id);
  }

  // Queue

  /** Calls a method in the background, one call after the other. Resolves with an id once it survives. */
  queue<T = unknown>(callback: keyof this & string, payload?: T, options?: QueueOptions): Promise<string> {
    return this[parts].queue.queue(callback, payload, options);
  }

  /** Takes a call back, unless it is running. False when there is none. */
  dequeue(id: string): Promise<boolean> {
    return this[parts].queue.dequeue(id);
  }

  dequeueAll(): Promise<number> {
    return this[parts].queue.dequeueAll();
  }

  dequeueAllByCallback(callback: string): Promise<number> {
    return this[parts].queue.dequeueAllByCallback(callback);
  }

  getQueue<T = unknown>(id: string): QueueItem<T> | undefined {
    return this[parts].queue.getQueue<T>(id);
  }

  /** Queued calls whose payload has `key` equal to `value`. */
  getQueues<T = unknown>(key: string, value: string): QueueItem<T>[] {
    return this[parts].queue.getQueues<T>(key, value);
  }

  /** Calls `work` again when it fails, with growing waits. Not stored: for that, use the queue or a fiber. */
  retry<T>(work: (attempt: number) => T | Promise<T>, options?: RetryCallOptions): Promise<T> {
    return retry(this[parts].host.clock, work, options, this[parts].retry);
  }

  // Staying in memory

  /** Keeps the agent in memory until the returned function is called. */
  keepAlive(): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    void this[parts].host.keepAwake(promise);
    return Promise.resolve(() => resolve());
  }

  /** Keeps the agent in memory while `work` runs. */
  keepAliveWhile<T>(work: () => Promise<T>): Promise<T> {
    return this[parts].host.keepAwake(work());
  }

  // Fibers

  /**
   * Runs a function that leaves a note of itself: if the process dies, {@link WorkingAgent.onFiberRecovered}
   * is called in the next life with the last checkpoint. The note goes when it returns or throws.
   */
  runFiber<T>(name: string, work: (fiber: FiberContext) => T | Promise<T>): Promise<T> {
    return this[parts].fibers.runFiber(name, work);
  }

  /**
   * Starts a method as a fiber that carries itself on: after a crash the method is called again with its
   * payload and the last checkpoint, after a throw too, until it is done or out of tries. Returns its id.
   */
  spawnFiber(method: keyof this & string, payload?: unknown, options?: SpawnFiberOptions): string {
    return this[parts].fibers.spawnFiber(method, payload, options);
  }

  /** Like {@link WorkingAgent.runFiber}, kept in a ledger: accepted once per key, to be inspected and cancelled. */
  startFiber(
    name: string,
    work: (fiber: FiberContext) => unknown,
    options?: StartFiberOptions,
  ): Promise<StartFiberResult> {
    const { host, fibers } = this[parts];
    // Who waits for it stays in its turn, and a turn that it ran would wait for that one.
    const of = causeNow(host);
    const isWaitedFor = options?.waitForCompletion === true;
    const run = (fiber: FiberContext) => runOutsideTurn(host.context, of, () => work(fiber));
    return fibers.startFiber(name, isWaitedFor ? work : run, options);
  }

  /** Replaces the checkpoint of the fiber that this runs in. @throws PerdureError `bad_state` outside of one. */
  stash(data: unknown): void {
    this[parts].fibers.stash(data);
  }

  /** The same as {@link WorkingAgent.stash}. */
  stashFiber(data: unknown): void {
    this[parts].fibers.stash(data);
  }

  inspectFiber(fiberId: string): FiberInspection | null {
    return this[parts].fibers.inspectFiber(fiberId);
  }

  inspectFiberByKey(idempotencyKey: string): FiberInspection | null {
    return this[parts].fibers.inspectFiberByKey(idempotencyKey);
  }

  listFibers(options?: ListFibersOptions): FiberInspection[] {
    return this[parts].fibers.listFibers(options);
  }

  /** Cancels for good: stored first, then the fiber's signal aborts. False when it had ended. */
  cancelFiber(fiberId: string, reason?: string): Promise<boolean> {
    return this[parts].fibers.cancelFiber(fiberId, reason);
  }

  cancelFiberByKey(idempotencyKey: string, reason?: string): Promise<boolean> {
    return this[parts].fibers.cancelFiberByKey(idempotencyKey, reason);
  }

  /** Decides how an interrupted fiber ends. False when it is not interrupted. */
  resolveFiber(fiberId: string, result: FiberRecoveryResult): Promise<boolean> {
    return this[parts].fibers.resolveFiber(fiberId, result);
  }

  /** Deletes settled fibers. @returns how many */
  deleteFibers(options?: DeleteFibersOptions): Promise<number> {
    return this[parts].fibers.deleteFibers(options);
  }

  /**
   * A fiber's function died with its process. Carry the work on from `snapshot`, and say how it ended; with
   * nothing said it stays interrupted. When this throws it is called again later, less and less often.
   */
  onFiberRecovered(_fiber: FiberRecoveryContext): void | FiberRecoveryResult | Promise<void | FiberRecoveryResult> {}
}
