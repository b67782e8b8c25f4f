import type { Move } from "../log/query.ts";
import { asError, nextDelay, notify, type RetryPolicy } from "../retry.ts";
import { foregroundClock, Timers, within, type Clock } from "../../base/time.ts";

/**
 * What became of one piece of work.
 * - `done`: never again under this id, until it was seen gone.
 * - `again`: at once, if nothing else is more urgent.
 * - `later`: nobody's now (another worker holds it, a condition is open); look again at the next wake, or, with `ms`,
 *   after that time and not before; with `orWake` whatever comes first.
 */
export type PumpOutcome = "done" | "again" | { readonly later: true; readonly ms?: number; readonly orWake?: true };

interface PumpContext {
  /** Aborts at `dispose()`. */
  readonly signal: AbortSignal;
  /** From 1; failures in a row count. */
  readonly attempt: number;
}

interface PumpBasics {
  readonly retry?: RetryPolicy;
  /** Failures of `read` and `giveUp`, and each failed try. */
  onError?(error: Error): void;
  /** What it waits by. Default: real time, which keeps the process alive. */
  readonly clock?: Clock;
}

/** A pump that is told what there is to do, and does it piece by piece. */
export interface PumpOptions<TItem> extends PumpBasics {
  /** All work there is now, most urgent first. Read anew after each run; only as much is consumed as can run. */
  read(): Iterable<TItem> | Promise<Iterable<TItem>>;
  /** What came and went since the last call (`moves` of a watch). A look then costs what moved instead of what there is. */
  moves?(): readonly Move<TItem>[];
  /** Names one execution. Work that comes again under the same id is not run again. */
  idOf(item: TItem): string;
  /** Does it. What it throws is retried by policy. */
  run(item: TItem, context: PumpContext): Promise<PumpOutcome>;
  /** Called when the last try has failed. What it throws goes to `onError`. */
  giveUp?(item: TItem, error: Error): Promise<void> | void;
  /**
   * Whether work that `read` no longer lists is really gone, so that its id may run again when it returns. False while merely
   * hidden, by an optimistic edit say. Default: gone.
   */
  isGone?(id: string): boolean;
  /** How many run at once. Default 1: in order, one behind the other. */
  readonly concurrency?: number;
}

/** A pump that cannot list its work: it asks for the next piece, and does it, in one step. */
export interface PollOptions extends PumpBasics {
  /** One step. `done`: the last one. What it throws is retried by policy. */
  poll(context: PumpContext): Promise<PumpOutcome>;
  /** Called when the last try has failed: there is no further step. What it throws goes to `onError`. */
  giveUp?(error: Error): Promise<void> | void;
}

/** A loop that does work while there is some. */
export interface Pump {
  /** Says that there may be work. Cheap; calls in between come to one. */
  wake(): void;
  /** Resolves when nothing runs and nothing is left to run now; retries that wait do not count. */
  idle(): Promise<void>;
  /** Aborts `signal` of all runs with `reason` and waits for them, `waitMs` at most (default 10 s). Starts nothing more. */
  dispose(waitMs?: number, reason?: unknown): Promise<void>;
  readonly disposed: boolean;
}

/** Where one id stands; none: it may run. `parked`: until the pump wakes. `waiting`: until its timer. `over`: not again. */
type Standing = "running" | "parked" | "waiting" | "over";

const DISPOSE_WAIT_MS = 10_000;

/**
 * The one loop of all workers. Whoever sees a change wakes it; it re-reads what is to be done and runs what it has not. So a row
 * that leaves and re-enters a query (a local edit, a refused claim, a re-sync) does not run twice, a failed one is not forgotten,
 * and one that came during a run is not missed.
 */
export function createPump(options: PollOptions): Pump;
export function createPump<TItem>(options: PumpOptions<TItem>): Pump;
export function createPump<TItem>(options: PumpOptions<TItem> | PollOptions): Pump {
  if (!("poll" in options)) return new SerialPump(options);
  // One piece of work that is always there.
  return new SerialPump<PollOptions>({
    ...options,
    read: () => [options],
    idOf: () => "poll",
    run: (_, context) => options.poll(context),
    giveUp: (_, error) => options.giveUp?.(error),
  });
}

class SerialPump<TItem> implements Pump {
  readonly #options: PumpOptions<TItem>;
  readonly #clock: Clock;
  readonly #report: (error: Error) => void;
  readonly #abort = new AbortController();
  readonly #standing = new Map<string, Standing>();
  readonly #attempts = new Map<string, number>();
  /** Ids that `read` does not list now. */
  readonly #absent = new Set<string>();
  readonly #running = new Set<Promise<void>>();
  readonly #timers: Timers;
  /** What cancels the timers of parked ids. */
  readonly #alarms = new Map<string, () => void>();
  /** How often somebody has said that there may be work. */
  #wakes = 0;
  #dirty = false;
  #failedLooks = 0;
  #turn: Promise<void> | undefined;

  constructor(options: PumpOptions<TItem>) {
    this.#options = options;
    this.#clock = options.clock ?? foregroundClock;
    this.#timers = new Timers(this.#clock);
    this.#report = (error) => notify(() => options.onError?.(error));
  }

  get disposed(): boolean {
    return this.#abort.signal.aborted;
  }

  wake(): void {
    this.#wakes++;
    for (const [id, standing] of this.#standing) if (standing === "parked") this.#standing.delete(id);
    this.#look();
  }

  async idle(): Promise<void> {
    while (!this.disposed && (this.#turn !== undefined || this.#running.size > 0)) {
      // Only what is under way: a race with "nothing" is won at once, and would let nothing else happen.
      await Promise.race(this.#turn === undefined ? this.#running : [this.#turn, ...this.#running]);
      await Promise.resolve();
    }
  }

  async dispose(waitMs = DISPOSE_WAIT_MS, reason?: unknown): Promise<void> {
    this.#abort.abort(reason);
    this.#timers.end();
    // Bounded, because a run that waits for this very promise would wait for itself.
    await within(this.#clock, waitMs, Promise.allSettled([this.#turn, ...this.#running]));
  }

  #look(): void {
    this.#dirty = true;
    if (this.#turn !== undefined || this.disposed) return;
    this.#turn = this.#loop().finally(() => {
      this.#turn = undefined;
      if (this.#dirty) this.#look();
    });
  }

  async #loop(): Promise<void> {
    // A microtask later, so that a burst of wakes in one tick is read once.
    await Promise.resolve();
    while (this.#dirty && !this.disposed) {
      this.#dirty = false;
      try {
        const items = await this.#read();
        if (this.disposed) return;
        for (const item of this.#pick(items)) this.#start(item);
        this.#failedLooks = 0;
      } catch (thrown) {
        const error = asError(thrown);
        this.#report(error);
        // Nobody else may wake it.
        const delay = nextDelay({ ...this.#options.retry, maxAttempts: Infinity }, ++this.#failedLooks, error);
        if (delay !== undefined) this.#timers.after(delay, () => this.#look());
        return;
      }
    }
  }

  async #read(): Promise<Iterable<TItem>> {
    const items = await this.#options.read();
    if (this.#options.moves !== undefined) {
      this.#follow(this.#options.moves());
      return items;
    }
    const all = [...items];
    this.#forget(all);
    return all;
  }

  /** Ids that are seen gone may come back as new work. */
  #forget(items: readonly TItem[]): void {
    if (this.#standing.size === 0) return;
    const there = new Set(items.map((item) => this.#options.idOf(item)));
    for (const id of this.#standing.keys()) if (!there.has(id)) this.#forgetOne(id);
  }

  /** The same by what has moved. Ids that are only hidden are looked at again each time. */
  #follow(moves: readonly Move<TItem>[]): void {
    for (const { to, row } of moves) {
      const id = this.#options.idOf(row);
      if (to === "in") this.#absent.delete(id);
      else this.#absent.add(id);
    }
    for (const id of this.#absent) {
      this.#forgetOne(id);
      if (!this.#standing.has(id)) this.#absent.delete(id);
    }
  }

  #forgetOne(id: string): void {
    if (this.#standing.get(id) === "running" || this.#options.isGone?.(id) === false) return;
    this.#standing.delete(id);
    this.#attempts.delete(id);
  }

  #pick(items: Iterable<TItem>): TItem[] {
    const room = (this.#options.concurrency ?? 1) - this.#running.size;
    const picked: TItem[] = [];
    if (room <= 0) return picked;
    const taken = new Set<string>();
    for (const item of items) {
      const id = this.#options.idOf(item);
      if (this.#standing.has(id) || taken.has(id)) continue;
      taken.add(id);
      picked.push(item);
      if (picked.length >= room) break;
    }
    return picked;
  }

  #start(item: TItem): void {
    const id = this.#options.idOf(item);
    this.#alarms.get(id)?.();
    this.#alarms.delete(id);
    this.#standing.set(id, "running");
    const run = this.#one(item, id).finally(() => {
      this.#running.delete(run);
      this.#look();
    });
    this.#running.add(run);
  }

  async #one(item: TItem, id: string): Promise<void> {
    const attempt = (this.#attempts.get(id) ?? 0) + 1;
    const wakes = this.#wakes;
    let outcome: PumpOutcome;
    try {
      outcome = await this.#options.run(item, { signal: this.#abort.signal, attempt });
    } catch (thrown) {
      return this.#failed(item, id, asError(thrown), attempt);
    }
    this.#attempts.delete(id);
    if (outcome === "done") this.#standing.set(id, "over");
    else if (outcome === "again") this.#standing.delete(id);
    else if (outcome.ms !== undefined && outcome.orWake !== true) this.#wait(id, outcome.ms);
    // What woke the pump during the run may be just what it has missed.
    else if (this.#wakes !== wakes) this.#standing.delete(id);
    else this.#park(id, outcome.ms);
  }

  async #failed(item: TItem, id: string, error: Error, attempt: number): Promise<void> {
    if (this.disposed) return;
    this.#report(error);
    this.#attempts.set(id, attempt);
    const delay = nextDelay(this.#options.retry ?? {}, attempt, error);
    if (delay !== undefined) return this.#wait(id, delay);
    this.#standing.set(id, "over");
    try {
      await this.#options.giveUp?.(item, error);
    } catch (failure) {
      this.#report(asError(failure));
    }
  }

  #park(id: string, ms: number | undefined): void {
    this.#standing.set(id, "parked");
    if (ms !== undefined) this.#alarms.set(id, this.#free(id, "parked", ms));
  }

  #wait(id: string, ms: number): void {
    this.#standing.set(id, "waiting");
    this.#free(id, "waiting", ms);
  }

  /** Lets the id run after a time, if it still stands as it does. @returns what cancels it. */
  #free(id: string, standing: Standing, ms: number): () => void {
    return this.#timers.after(ms, () => {
      if (this.#standing.get(id) === standing) this.#standing.delete(id);
      this.#look();
    });
  }
}
