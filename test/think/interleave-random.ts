// Chance that can be repeated: the same seed gives the same run.

/** A sequence of numbers that a seed decides. */
export interface Random {
  /** From 0 up to, not including, 1. */
  next(): number;
  /** From 0 up to, not including, `n`. */
  int(n: number): number;
  chance(probability: number): boolean;
  pick<T>(list: readonly [T, ...T[]]): T;
  /** A key, as often as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K;
}

export function random(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000;
  };
  const int = (n: number) => Math.floor(next() * n);
  return {
    next,
    int,
    chance: (probability) => next() < probability,
    pick: (list) => at(list, next()),
    weighted(weights) {
      const entries = Object.entries(weights) as [keyof typeof weights, number][];
      let left = next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [key, weight] of entries) if ((left -= weight) < 0) return key;
      return entries[entries.length - 1]?.[0] as keyof typeof weights;
    },
  };
}

/** The element at a part of the list's length, `where` from 0 to 1. */
export function at<T>(list: readonly [T, ...T[]], where: number): T;
export function at<T>(list: readonly T[], where: number): T | undefined;
export function at<T>(list: readonly T[], where: number): T | undefined {
  return list[Math.floor(where * list.length)];
}

/** A number for a text: the same text, the same number. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
