import type { Clock } from "../../id.ts";

/** Time that only passes: nobody sets it. Its timers never keep a process alive. */
export const monotonicClock: Clock = {
  now: () => performance.now(),
  after: (ms, work) => {
    const timer: unknown = setTimeout(work, ms);
    // A number in browsers; an object in Node.
    if (typeof timer === "object" && timer !== null && "unref" in timer && typeof timer.unref === "function") {
      timer.unref();
    }
    return () => clearTimeout(timer as ReturnType<typeof setTimeout>);
  },
};

/** Waits for `work`, but not longer than `ms`. Never rejects. */
export async function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  let cancel = () => {};
  const late = new Promise<void>((resolve) => (cancel = clock.after(ms, resolve)));
  await Promise.race([work.catch(() => {}), late]);
  cancel();
}
