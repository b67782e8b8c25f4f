import type { Clock } from "../base/id.ts";

/** Timers hold 31 bits; one that is set to more fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Runs `work` once after `ms`, however many they are. `background`: without keeping a process alive for it.
 * @returns a function that cancels it.
 */
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

/** Waits, but not longer than until the signal aborts. Never rejects. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const end = () => {
      cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const cancel = startTimer(ms, end);
    signal?.addEventListener("abort", end, { once: true });
  });
}

/** Time that only passes: nobody sets it. Its timers never keep a process alive. */
export const monotonicClock: Clock = {
  now: () => performance.now(),
  after: (ms, work) => startTimer(ms, work, true),
};

/** The same, for a loop that is a process's work: its timers keep the process alive. */
export const foregroundClock: Clock = { now: () => performance.now(), after: (ms, work) => startTimer(ms, work) };

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

/** Waits for `work`, but not longer than `ms`. Never rejects. */
export async function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  let cancel = () => {};
  const late = new Promise<void>((resolve) => (cancel = clock.after(ms, resolve)));
  await Promise.race([work.catch(() => {}), late]);
  cancel();
}

/** Aborts `abort` when one of the signals does, with its reason. @returns what ends that. */
export function linkSignals(signals: readonly (AbortSignal | undefined)[], abort: AbortController): () => void {
  const ends = signals.map((signal) => {
    const stop = () => abort.abort(signal?.reason);
    if (signal?.aborted === true) stop();
    signal?.addEventListener("abort", stop, { once: true });
    return () => signal?.removeEventListener("abort", stop);
  });
  return () => ends.forEach((end) => end());
}
