/**
 * Stores the latest of many values: one write at a time, and what came meanwhile as one more. So news that come
 * faster than they can be stored do not pile up.
 */
export class LatestValue {
  private readonly store: (value: unknown) => Promise<void>;
  private next: { value: unknown } | undefined;
  private working: Promise<void> | undefined;

  /** @param store must not reject. */
  constructor(store: (value: unknown) => Promise<void>) {
    this.store = store;
  }

  /** Resolves when this value, or a later one, is stored. */
  put(value: unknown): Promise<void> {
    this.next = { value };
    this.working ??= this.work();
    return this.working;
  }

  /** Forgets what was not begun, and waits for what was. */
  async end(): Promise<void> {
    this.next = undefined;
    await this.working;
  }

  private async work(): Promise<void> {
    for (let value = this.take(); value !== undefined; value = this.take()) await this.store(value.value);
    // In the same breath as the last look: what came in between would be forgotten.
    this.working = undefined;
  }

  private take(): { value: unknown } | undefined {
    const { next } = this;
    this.next = undefined;
    return next;
  }
}
