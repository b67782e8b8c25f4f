import { reportStoreFailure, STORE_RETRY_MS } from "./callback.ts";
import { MAX_RUNNING, START_BATCH, type Work, type WorkContext } from "./work.ts";

/** What schedules, queue, tasks and fibers share: starts due rows in order, in bounded batches. In memory is only what runs. */
export abstract class DueWork<K> implements Work {
  protected readonly context: WorkContext;
  readonly #maxRunning: number;
  readonly #running = new Set<K>();
  #starting = false;
  #adopted = false;
  #halted = false;
  /** How many were started since others had their turn. */
  #sinceBreath = 0;
  #breathing = false;
  /** Not before this time, after the store refused a write. Otherwise the alarm would come back at once. */
  #pausedUntil = 0;

  /** @param maxRunning what may run at one time */
  constructor(context: WorkContext, maxRunning = MAX_RUNNING) {
    this.context = context;
    this.#maxRunning = maxRunning;
  }

  /** Once per life, before anything else: takes over rows that an earlier life left running. */
  protected abstract takeOver(): void;
  /** The first rows that wait, in the order in which they are to run. */
  protected abstract waiting(limit: number): readonly { readonly key: K; readonly at: number }[];
  /** Marks the row as running, runs it, and calls `ended` once its end is stored; at once if it is gone or not due. */
  protected abstract start(key: K, ended: () => void): void;
  /** The life ends. */
  protected halting?(reason: unknown): void;

  get halted(): boolean {
    return this.#halted;
  }

  /** How many run now. */
  get running(): number {
    return this.#running.size;
  }

  isRunning(key: K): boolean {
    return this.#running.has(key);
  }

  /** Must come before any write or start of this life, so that what it finds is surely of an earlier one. */
  adopt(): void {
    if (this.#adopted || this.#halted) return;
    this.takeOver();
    this.#adopted = true;
    this.context.host.afterTx((committed) => {
      if (!committed) this.#adopted = false;
    });
  }

  /** Tells the agent that due times or running work changed, once that is certain. */
  changed(): void {
    const { context } = this;
    if (this.#halted) return;
    context.host.afterTx(() => {
      try {
        if (!this.#halted) context.changed();
      } catch (error) {
        reportStoreFailure(context, error);
      }
    });
  }

  next(): number | null {
    this.adopt();
    if (this.#running.size >= this.#maxRunning) return null;
    const [first] = this.waiting(1);
    return first === undefined ? null : Math.max(first.at, this.#pausedUntil);
  }

  active(): boolean {
    return this.#starting || this.#breathing || this.#running.size > 0;
  }

  /** Starts what is due as soon as the code that runs now, and the transaction that it is in, has ended. */
  runSoon(): void {
    this.context.host.afterTx((committed) => {
      if (committed) queueMicrotask(() => this.runDue());
    });
  }

  runDue(): void {
    this.#runDue();
  }

  /** @returns whether it looked, and so told the agent of changes. */
  #runDue(): boolean {
    const { context } = this;
    if (this.#starting || this.#halted || context.stopped()) return false;
    if (context.host.clock.now() < this.#pausedUntil) return false;
    if (this.#sinceBreath >= START_BATCH) {
      this.#breathe();
      return false;
    }
    try {
      this.adopt();
      for (let left = START_BATCH; left > 0 && !this.#halted && !context.stopped();) {
        const room = Math.min(left, this.#maxRunning - this.#running.size);
        const first = room > 0 ? this.waiting(room) : [];
        const now = context.host.clock.now();
        const notDue = first.findIndex(({ at }) => at > now);
        const due = notDue < 0 ? first : first.slice(0, notDue);
        if (due.length === 0) break;
        left -= due.length;
        if (!this.#starting) {
          this.#starting = true;
          // Before the first start: work that ends the process must find the agent marked busy.
          this.changed();
        }
        for (const { key } of due) if (!this.#halted) this.#start(key);
      }
    } catch (error) {
      this.#pausedUntil = context.host.clock.now() + STORE_RETRY_MS;
      reportStoreFailure(context, error);
    } finally {
      this.#starting = false;
      this.changed();
    }
    return true;
  }

  /** Work that makes more work at once would never end: the rest of the host has its turn in between. */
  #breathe(): void {
    if (this.#breathing) return;
    this.#breathing = true;
    const goOn = () => {
      this.#breathing = false;
      this.#sinceBreath = 0;
      if (!this.#runDue()) this.changed();
    };
    // It fails only where this life is over: the next one finds the rows.
    void this.context.host
      .breathe()
      .then(goOn)
      .catch(() => {});
  }

  #start(key: K): void {
    this.#sinceBreath++;
    this.begin(key);
    try {
      this.start(key, () => this.end(key));
    } catch (error) {
      this.#running.delete(key);
      throw error;
    }
  }

  /** Counts something as running that was not started by {@link DueWork.runDue}. */
  begin(key: K): void {
    this.#running.add(key);
  }

  /** It runs no more. What is due takes its place. */
  end(key: K): void {
    if (!this.#running.delete(key) || this.#starting || this.#halted) return;
    if (!this.#runDue()) this.changed();
  }

  halt(reason: unknown): void {
    if (this.#halted) return;
    this.#halted = true;
    this.#running.clear();
    this.halting?.(reason);
  }
}
