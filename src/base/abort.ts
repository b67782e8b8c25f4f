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
