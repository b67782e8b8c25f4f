import type { Clock } from "../../base/id.ts";
import { startTimer } from "../timer.ts";

/** Time that only passes: nobody sets it. Its timers never keep a process alive. */
export const monotonicClock: Clock = {
  now: () => performance.now(),
  after: (ms, work) => startTimer(ms, work, true),
};

/** Waits for `work`, but not longer than `ms`. Never rejects. */
export async function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  let cancel = () => {};
  const late = new Promise<void>((resolve) => (cancel = clock.after(ms, resolve)));
  await Promise.race([work.catch(() => {}), late]);
  cancel();
}
