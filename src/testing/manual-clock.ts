import { PerdureError } from "../base/error.ts";
import type { Clock } from "../base/time.ts";

/** A clock that stands still until a test moves it. */
export interface ManualClock extends Clock {
  /**
   * Lets `ms` milliseconds pass. Timers that fall due run one by one in the order of their due times (equal
   * times: in the order they were set), each at its own `now()`; promises that were ready settle before the
   * first, between any two and after the last. A timer set by a timer also runs if it falls due on the way.
   * Overlapping calls run one after the other. If timers throw, the rest still run and it rejects with the
   * first error. @throws PerdureError `bad_input` for a negative time, `limit` when timers set each other forever
   */
  advance(ms: number): Promise<void>;
  /** Moves to the time `at`. Forward is `advance`. Backward puts the wall clock back: timers wait as long as they had left. */
  set(at: number): Promise<void>;
  /** How many timers are waiting. */
  pending(): number;
  /** Milliseconds until the next timer falls due; `undefined` when none waits. */
  untilNext(): number | undefined;
}

interface Timer {
  readonly due: number;
  readonly work: () => void;
}

/** 2025-01-01: far from zero, so that code that mistakes a duration for a date shows. */
const DEFAULT_START = Date.UTC(2025, 0, 1);
/** More than any honest test runs in one `advance`. */
const MAX_TIMERS_PER_MOVE = 100_000;

/** A {@link ManualClock} that shows `start` (milliseconds since the epoch; 2025-01-01 by default). */
export function manualClock(start: number = DEFAULT_START): ManualClock {
  let wall = start;
  /** Timers count elapsed time, not wall time, as those of a real machine do. */
  let elapsed = 0;
  const timers = new Set<Timer>();
  let moves: Promise<unknown> = Promise.resolve();

  const earliest = (): Timer | undefined => {
    let first: Timer | undefined;
    for (const timer of timers) if (first === undefined || timer.due < first.due) first = timer;
    return first;
  };
  const pass = (ms: number): void => {
    wall += ms;
    elapsed += ms;
  };

  async function move(ms: number): Promise<void> {
    await settle();
    const target = elapsed + ms;
    const errors: unknown[] = [];
    for (let ran = 0; ; ran++) {
      const timer = earliest();
      if (timer === undefined || timer.due > target) break;
      if (ran === MAX_TIMERS_PER_MOVE) {
        throw new PerdureError("limit", `${ran} timers ran in one move of the clock: they keep setting each other.`);
      }
      timers.delete(timer);
      pass(Math.max(0, timer.due - elapsed));
      try {
        timer.work();
      } catch (error) {
        errors.push(error);
      }
      await settle();
    }
    pass(target - elapsed);
    await settle();
    if (errors.length > 0) throw errors[0];
  }

  const queue = (work: () => Promise<void>): Promise<void> => {
    const done = moves.then(work);
    moves = done.catch(() => undefined);
    return done;
  };

  return {
    now: () => wall,
    after(ms, work) {
      const timer: Timer = { due: elapsed + (ms > 0 ? ms : 0), work };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    async advance(ms) {
      if (!(ms >= 0)) throw new PerdureError("bad_input", `A clock cannot advance by ${ms} ms; use set() to go back.`);
      await queue(() => move(ms));
    },
    set: (at) =>
      queue(async () => {
        if (!Number.isFinite(at)) throw new PerdureError("bad_input", `A clock cannot be set to ${at}.`);
        if (at >= wall) return move(at - wall);
        wall = at;
        await settle();
      }),
    pending: () => timers.size,
    untilNext: () => {
      const timer = earliest();
      return timer === undefined ? undefined : Math.max(0, timer.due - elapsed);
    },
  };
}

/** A turn of the event loop: chains of promises of any length settle, which no count of `await`s ensures. */
function settle(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
