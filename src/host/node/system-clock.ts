import type { Clock } from "../../base/id.ts";

/** Timers hold 31 bits; one that is set to more fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, work) {
    let timer: NodeJS.Timeout;
    const wait = (left: number): void => {
      timer = setTimeout(
        () => (left > LONGEST_TIMER_MS ? wait(left - LONGEST_TIMER_MS) : work()),
        Math.min(left, LONGEST_TIMER_MS),
      );
      timer.unref();
    };
    wait(ms);
    return () => clearTimeout(timer);
  },
};

/** Keeps the process running while somebody holds it. `end` lets go for good. */
export function newHolds(): { readonly hold: () => () => void; readonly end: () => void } {
  const timer = setInterval(() => {}, LONGEST_TIMER_MS);
  timer.unref();
  let held = 0;
  return {
    hold: () => {
      let holds = true;
      if (held++ === 0) timer.ref();
      return () => {
        if (!holds) return;
        holds = false;
        if (--held === 0) timer.unref();
      };
    },
    end: () => clearInterval(timer),
  };
}
