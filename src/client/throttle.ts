/** Calls `work` at once if urgent or not called lately, else later. Returns that function, and one that drops pending work. */
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
