import type { Clock } from "../base/time.ts";

/** A clock whose timers keep the process running until they fire or are cancelled: for work that has a due time. */
export function heldClock(clock: Clock, hold: () => () => void): Clock {
  return {
    now: () => clock.now(),
    after(ms, work) {
      const release = hold();
      const cancel = clock.after(ms, () => {
        // Behind the work: it may set the next timer.
        try {
          work();
        } finally {
          release();
        }
      });
      return () => {
        cancel();
        release();
      };
    },
  };
}
