/** Watches how long the event loop of this process stood still, and how much memory it took, while something ran. */
export async function watchHost<T>(
  work: () => Promise<T>,
): Promise<{ value: T; lagMs: number; grownMB: number; ms: number }> {
  const STEP_MS = 20;
  const began = performance.now();
  const before = process.memoryUsage.rss();
  let last = began;
  let lagMs = 0;
  let peak = before;
  const timer = setInterval(() => {
    const now = performance.now();
    lagMs = Math.max(lagMs, now - last - STEP_MS);
    last = now;
    peak = Math.max(peak, process.memoryUsage.rss());
  }, STEP_MS);
  try {
    const value = await work();
    return { value, lagMs, grownMB: (peak - before) / 1e6, ms: performance.now() - began };
  } finally {
    clearInterval(timer);
  }
}
