import type { Clock } from "../../base/time.ts";
import type { ObjectStorage } from "./platform.ts";

interface Timer {
  readonly at: number;
  readonly work: () => void;
}

/**
 * The one alarm of an object, for all that is due there: it rings also when the object has left memory. While something is under
 * way that has written, it rings at least every so often: so an object that was cut off is brought back, with nobody connected.
 */
export class ObjectAlarm implements Clock {
  readonly #storage: ObjectStorage;
  readonly #heartbeatMs: number;
  readonly #waitUntil: (work: Promise<unknown>) => void;
  readonly #timers = new Set<Timer>();
  #held = 0;
  #letGo: (() => void) | undefined;
  #wrote = false;
  /** What the platform was told; undefined: by an earlier stay in memory, if at all. */
  #armed: number | null | undefined;
  #flushing = false;
  #stopped = false;

  constructor(storage: ObjectStorage, heartbeatMs: number, waitUntil: (work: Promise<unknown>) => void) {
    this.#storage = storage;
    this.#heartbeatMs = heartbeatMs;
    this.#waitUntil = waitUntil;
  }

  now(): number {
    return Date.now();
  }

  after(ms: number, work: () => void): () => void {
    const timer = { at: this.now() + ms, work };
    this.#timers.add(timer);
    this.#flush();
    return () => {
      if (this.#timers.delete(timer)) this.#flush();
    };
  }

  /** Something is under way until the returned function is called. */
  hold(): () => void {
    if (this.#held++ === 0) this.#waitUntil(new Promise<void>((resolve) => (this.#letGo = resolve)));
    let holds = true;
    return () => {
      if (!holds) return;
      holds = false;
      if (--this.#held > 0) return;
      this.#letGo?.();
      this.#wrote = false;
      this.#flush();
    };
  }

  /** Rows were written: what is under way must be brought back if it is cut off. */
  wrote(): void {
    if (this.#wrote || this.#held === 0) return;
    this.#wrote = true;
    this.#flush();
  }

  /** The platform's alarm has rung. */
  rang(): void {
    this.#armed = null;
    const now = this.now();
    for (const timer of [...this.#timers]) {
      if (timer.at > now || !this.#timers.delete(timer)) continue;
      timer.work();
    }
    this.#flush();
  }

  /** The object is being deleted: its last alarm is set by who deletes it. */
  stop(): void {
    this.#stopped = true;
    this.#timers.clear();
  }

  /** Nothing is stored any more, no alarm either. */
  restart(): void {
    this.#stopped = false;
    this.#armed = undefined;
    this.#wrote = false;
  }

  /** Once, behind all that is synchronous now: an alarm that is set in a transaction is undone with it. */
  #flush(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(() => {
      this.#flushing = false;
      if (!this.#stopped) this.#arm();
    });
  }

  #arm(): void {
    const now = this.now();
    let at: number | null = null;
    for (const timer of this.#timers) if (at === null || timer.at < at) at = timer.at;
    if (this.#held > 0 && this.#wrote) {
      const armed = this.#armed ?? 0;
      const beat = armed > now && armed <= now + this.#heartbeatMs ? armed : now + this.#heartbeatMs;
      if (at === null || at > beat) at = beat;
    }
    // What an earlier stay has asked for may ring: the agent looks, and asks again.
    if (at === this.#armed || (at === null && this.#armed === undefined)) return;
    this.#armed = at;
    if (at === null) void this.#storage.deleteAlarm();
    else void this.#storage.setAlarm(Math.max(at, now));
  }
}
