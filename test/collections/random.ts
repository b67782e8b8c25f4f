/** Numbers that are the same each time. */
export function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Lets others go first: for a moment, or (from 7 on) for longer. */
export function pause(turns: number): Promise<void> {
  return new Promise((resolve) => {
    if (turns > 6) setTimeout(resolve, 1);
    else queueMicrotask(resolve);
  });
}
