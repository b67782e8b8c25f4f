/**
 * Calls `work` at once when it is urgent or was not called for a while, and otherwise when that while is over.
 * @returns the throttled function, and one that gives up what is still to come.
 */
export function throttled(work: () => void, ms: number | false): [call: (urgent: boolean) => void, stop: () => void] {
  if (ms === false || ms <= 0) return [work, () => {}];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let missed = false;
  const run = () => {
    missed = false;
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      if (missed) run();
    }, ms);
    work();
  };
  const call = (urgent: boolean) => {
    if (urgent || timer === undefined) run();
    else missed = true;
  };
  return [call, () => clearTimeout(timer)];
}
