import type { Clock } from "perdure/host";

/** A second of schedules and back-offs takes so many times less. */
const SPEED = 50;
/** The same in every life, so that what one life planned has its time in the next. */
const START = Date.UTC(2025, 0, 1);

/** The machine's clock, but faster. Crash tests wait for real processes; their timers need not. */
export const fastClock: Clock = clockOf(SPEED);

/** The same, so many times faster than the machine's. */
export function clockOf(speed: number): Clock {
  return {
    now: () => Math.floor(START + (Date.now() - START) * speed),
    after(ms, work) {
      const timer = setTimeout(work, Math.ceil(ms / speed));
      return () => clearTimeout(timer);
    },
  };
}
