const MOST_TIMERS = 1_000;
const SHORTEST_MS = 1;
const LONGEST_MS = 2 ** 31 - 1;

/** The timers of one guest. They live in the lane; the functions stay in the guest. */
export class GuestTimers {
  readonly #fire: (id: number) => void;
  readonly #running = new Map<
    number,
    { readonly handle: NodeJS.Timeout; readonly ms: number; readonly repeats: boolean }
  >();

  constructor(fire: (id: number) => void) {
    this.#fire = fire;
  }

  /** Whether one is under way that ends by itself. One that repeats waits for nothing. */
  get pending(): boolean {
    for (const timer of this.#running.values()) if (!timer.repeats) return true;
    return false;
  }

  get repeating(): boolean {
    return this.#running.size > 0;
  }

  /** False when there are too many. */
  set(id: number, ms: number, repeats: boolean): boolean {
    if (this.#running.size >= MOST_TIMERS) return false;
    const wait = Math.min(Math.max(Number.isFinite(ms) ? ms : LONGEST_MS, SHORTEST_MS), LONGEST_MS);
    const handle = repeats
      ? setInterval(() => this.#fire(id), wait)
      : setTimeout(() => {
          this.#running.delete(id);
          this.#fire(id);
        }, wait);
    this.#running.set(id, { handle, ms: wait, repeats });
    return true;
  }

  clear(id: number): void {
    const timer = this.#running.get(id);
    if (timer === undefined) return;
    clearTimeout(timer.handle);
    this.#running.delete(id);
  }

  clearAll(): void {
    for (const id of this.#running.keys()) this.clear(id);
  }

  /** Those that repeat, as pairs of id and milliseconds: they start again when the guest wakes. */
  list(): [number, number][] {
    return [...this.#running].filter(([, timer]) => timer.repeats).map(([id, timer]) => [id, timer.ms]);
  }
}
