/** Aborts `abort` when one of the signals does, with its reason. @returns what ends that. */
export function linkSignals(signals: readonly (AbortSignal | undefined)[], abort: AbortController): () => void {
  const ends = signals.map((signal) => {
    const stop = () => abort.abort(signal?.reason);
    if (signal?.aborted === true) stop();
    signal?.addEventListener("abort", stop, { once: true });
    return () => signal?.removeEventListener("abort", stop);
  });
  return () => ends.forEach((end) => end());
}

/** What `work` gives; undefined when the signal aborts first, or has: then it is not begun. Rejects as `work` does. */
export function unlessAborted<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  if (signal.aborted) return Promise.resolve(undefined);
  const stopped = Promise.withResolvers<undefined>();
  const stop = () => stopped.resolve(undefined);
  signal.addEventListener("abort", stop, { once: true });
  return Promise.race([work(), stopped.promise]).finally(() => signal.removeEventListener("abort", stop));
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** Waits for `work`, but not longer than until the signal aborts: then it rejects with its reason. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason as Error);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
