import type { Clock } from "../base/time.ts";
import type { AgentIndex } from "./storage.ts";

/** Woken in one go; the rest follows in the next turn of the event loop, so that sockets are served between. */
const BATCH = 32;

/** Wakes agents that sleep: at start those that were cut off, then each at its alarm. */
export class WakeIndex {
  readonly #index: AgentIndex;
  readonly #clock: Clock;
  readonly #wake: (id: string) => void;
  #cancel: (() => void) | undefined;
  #stopped = true;

  constructor(index: AgentIndex, clock: Clock, wake: (id: string) => void) {
    this.#index = index;
    this.#clock = clock;
    this.#wake = wake;
  }

  start(): void {
    this.#stopped = false;
    this.#wakeAll(this.#index.awake());
    this.rearm();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  /** Sets the one timer for the earliest alarm of all sleeping agents. */
  rearm(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (this.#stopped) return;
    const at = this.#index.nextDue();
    if (at === null) return;
    const wait = Math.max(0, at - this.#clock.now());
    this.#cancel = this.#clock.after(wait, () => this.#fire());
  }

  #fire(): void {
    const ids = this.#index.due(this.#clock.now(), BATCH);
    for (const id of ids) {
      // From here on it counts as cut off until its life ends in order.
      this.#index.wake(id);
      this.#wake(id);
    }
    this.rearm();
  }

  #wakeAll(ids: readonly string[], from = 0): void {
    const next = from + BATCH;
    for (const id of ids.slice(from, next)) this.#wake(id);
    if (ids.length <= next) return;
    this.#clock.after(1, () => {
      if (!this.#stopped) this.#wakeAll(ids, next);
    });
  }
}
