import { startTimer } from "../base/time.ts";

/** What ends a wait besides what is waited for. */
interface WaitLimits {
  readonly signal?: AbortSignal;
  /** What an abort is told as. Default: the signal's reason. */
  readonly aborted?: () => Error;
  /** In ms. Default: as long as it takes. */
  readonly timeout?: number;
  readonly late?: () => Error;
}

/**
 * Resolves with what `look` gives: now, or when `subscribe` tells of news. Rejects with what either fails with, and by its
 * limits.
 */
export function waitUntil<T>(
  subscribe: (again: () => void, fail: (error: unknown) => void) => () => void,
  look: () => T | undefined,
  { signal, aborted, timeout, late }: WaitLimits,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const stop = () => reject(aborted?.() ?? signal?.reason);
  const again = () => {
    try {
      const found = look();
      if (found !== undefined) resolve(found);
    } catch (error) {
      reject(error);
    }
  };
  if (signal?.aborted === true) {
    stop();
    return promise;
  }
  signal?.addEventListener("abort", stop, { once: true });
  const stopTimer = timeout === undefined ? undefined : startTimer(timeout, () => reject(late?.()));
  const unsubscribe = subscribe(again, reject);
  again();
  return promise.finally(() => {
    unsubscribe();
    stopTimer?.();
    signal?.removeEventListener("abort", stop);
  });
}
