import { LONGEST_TIMER_MS } from "../../base/time.ts";

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
