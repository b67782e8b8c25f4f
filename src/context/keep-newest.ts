/** Puts an entry last, and lets the oldest go. */
export function keepNewest<T>(map: Map<string, T>, key: string, value: T, most: number): void {
  map.delete(key);
  map.set(key, value);
  for (const old of map.keys()) {
    if (map.size <= most) return;
    map.delete(old);
  }
}
