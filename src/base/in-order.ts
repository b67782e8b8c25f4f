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
