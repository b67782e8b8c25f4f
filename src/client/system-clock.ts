import type { Clock } from "../base/id.ts";

/** The clock of the machine. Its timers run in browsers, workers and Node alike. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, work) {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
};
