/** Milliseconds of this thread's own computing where Node can tell, of the clock where it cannot. */
export const cpuNow: () => number =
  typeof process.threadCpuUsage === "function"
    ? () => {
        const { user, system } = process.threadCpuUsage();
        return (user + system) / 1_000;
      }
    : () => performance.now();
