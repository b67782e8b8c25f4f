const EVERY_MS = 2_000;

/** Tells on stderr how far something is that takes long. What takes less than two seconds tells nothing. */
export class Progress {
  readonly #what: string;
  readonly #total: number;
  #done = 0;
  #told = Date.now();

  constructor(what: string, total: number) {
    this.#what = what;
    this.#total = total;
  }

  step(): void {
    this.#done++;
    if (Date.now() < this.#told + EVERY_MS) return;
    this.#told = Date.now();
    this.#tell("\r");
  }

  end(): void {
    if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  }

  #tell(start: string): void {
    const line = `${this.#done} of ${this.#total} ${this.#what}`;
    process.stderr.write(process.stderr.isTTY ? `${start}\x1b[K${line}` : `${line}\n`);
  }
}

/** Does something with each of `items`, so many at a time. What is thrown first ends it, when what was begun has ended. */
export async function inParallel<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items[Symbol.iterator]();
  let failure: { readonly thrown: unknown } | undefined;
  const lane = async () => {
    for (const item of queue) {
      if (failure !== undefined) return;
      try {
        await work(item);
      } catch (thrown) {
        failure ??= { thrown };
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  if (failure !== undefined) throw failure.thrown;
}
