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
