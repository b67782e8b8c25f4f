import type { CountText } from "./text-units.ts";

/** What things weigh that are looked at once, for each way to count. Nothing is kept alive by it. */
export class Remembered<Key extends object> {
  readonly #known = new WeakMap<CountText, WeakMap<Key, number>>();

  of(key: Key, count: CountText, weigh: () => number): number {
    const before = this.#known.get(count)?.get(key);
    if (before !== undefined) return before;
    const units = weigh();
    this.set(key, count, units);
    return units;
  }

  set(key: Key, count: CountText, units: number): void {
    let known = this.#known.get(count);
    if (known === undefined) this.#known.set(count, (known = new WeakMap()));
    known.set(key, units);
  }
}
