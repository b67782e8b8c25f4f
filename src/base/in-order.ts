/** Runs what it is given one after the other, whatever became of what came before. Each resolves or rejects as its work does. */
export class InOrder {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work);
    this.#last = mine.catch(() => {});
    return mine;
  }

  /** Resolves when all that was given so far has ended. */
  async idle(): Promise<void> {
    await this.#last;
  }
}

/** The same, of what is given with the same key. */
export class InOrderByKey<KEY> {
  readonly #last = new Map<KEY, Promise<unknown>>();

  run<T>(key: KEY, work: () => Promise<T>): Promise<T> {
    const mine = (this.#last.get(key) ?? Promise.resolve()).then(work);
    const ended = mine
      .catch(() => {})
      .then(() => {
        if (this.#last.get(key) === ended) this.#last.delete(key);
      });
    this.#last.set(key, ended);
    return mine;
  }
}
