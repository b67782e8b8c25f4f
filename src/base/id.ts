/** A new random id. Ids are names only: order always comes from a sequence number of the store. */
export function newId(prefix?: string): string {
  const id = crypto.randomUUID();
  return prefix === undefined ? id : `${prefix}_${id}`;
}

/**
 * Time, as far as Perdure needs it. Everything that reads a clock or waits takes one of these, so that
 * tests can hold time in their hands (`manualClock` of `perdure/testing`).
 */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /**
   * Runs `work` once, not before `ms` milliseconds have passed, however many. Never keeps a process alive.
   * @returns a function that cancels it; calling that again, or late, does nothing.
   */
  after(ms: number, work: () => void): () => void;
}

/** The clock of the machine. Its timers run in browsers, workers and Node alike, and hold a process. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, work) {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
};

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
