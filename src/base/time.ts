/** Time, as Perdure needs it. Whatever reads a clock or waits takes one, so tests control time (`manualClock`). */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Runs `work` once, after at least `ms`. Never keeps a process alive. @returns what cancels it, any number of times */
  after(ms: number, work: () => void): () => void;
}

/** Timers hold 31 bits; one that is set to more fires at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Runs `work` once after `ms`. `background`: without keeping a process alive. @returns what cancels it */
export function startTimer(ms: number, work: () => void, background = false): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const wait = (left: number): void => {
    timer = setTimeout(
      () => (left > LONGEST_TIMER_MS ? wait(left - LONGEST_TIMER_MS) : work()),
      Math.min(left, LONGEST_TIMER_MS),
    );
    if (background) unref(timer);
  };
  wait(ms);
  return () => clearTimeout(timer);
}

/** A number in browsers, which need no such thing; an object in Node. */
function unref(timer: unknown): void {
  if (typeof timer === "object" && timer !== null && "unref" in timer && typeof timer.unref === "function") {
    timer.unref();
  }
}

/** The clock of the machine, for what a process works on: its timers keep the process alive. */
export const systemClock: Clock = { now: () => Date.now(), after: (ms, work) => startTimer(ms, work) };

/** The clock of the machine. Its timers never keep a process alive. */
export const backgroundClock: Clock = { now: () => Date.now(), after: (ms, work) => startTimer(ms, work, true) };

/** Time that only passes: nobody sets it. Its timers never keep a process alive. */
export const monotonicClock: Clock = {
  now: () => performance.now(),
  after: (ms, work) => startTimer(ms, work, true),
};

/** The same, for a loop that is a process's work: its timers keep the process alive. */
export const foregroundClock: Clock = { now: () => performance.now(), after: (ms, work) => startTimer(ms, work) };

/** Resolves after `ms` milliseconds of `clock`, or rejects with the signal's reason when it aborts. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const stop = () => {
      cancel();
      reject(signal?.reason as Error);
    };
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener("abort", stop);
      resolve();
    });
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Waits, but not longer than until the signal aborts. Never rejects. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return sleep(systemClock, ms, signal).catch(() => {});
}

/** Waits for `work`, but not longer than `ms`: then it is undefined. Rejects as `work` does. */
export async function within<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const cancel = clock.after(ms, () => late.resolve(undefined));
  return Promise.race([work, late.promise]).finally(cancel);
}

/** How long to wait after `failures` in a row, from 1: `first` milliseconds, doubled with each, and never more than `most`. */
export function backOff(failures: number, first: number, most = Infinity): number {
  return Math.min(first * 2 ** (failures - 1), most);
}

/** Timers that end together. */
export class Timers {
  readonly #clock: Clock;
  readonly #cancels = new Set<() => void>();
  #ended = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs `work` once after `ms`; never, once they have ended. @returns what cancels it. */
  after(ms: number, work: () => void): () => void {
    if (this.#ended) return () => {};
    const cancel = () => {
      stop();
      this.#cancels.delete(cancel);
    };
    const stop = this.#clock.after(ms, () => {
      this.#cancels.delete(cancel);
      work();
    });
    this.#cancels.add(cancel);
    return cancel;
  }

  end(): void {
    this.#ended = true;
    for (const cancel of this.#cancels) cancel();
  }
}
