/** How long frames are handed over before everything else in the process has its turn, in milliseconds. */
const TURN_MS = 8;

/** A socket whose frames may have to wait. */
interface FrameSource {
  /** Reads no more from the network for now. */
  pause(): void;
  resume(): void;
}

/**
 * Hands frames over in turns. One read may bring thousands: after some milliseconds the rest waits, in each socket's order and
 * all sockets by turns, until timers and other sockets were heard. A socket whose frames wait is not read.
 */
export class FrameTurns {
  readonly #waiting = new Map<FrameSource, (() => void)[]>();
  #until = 0;
  #isScheduled = false;

  /** Does `work` now if there is time, else behind what waits of the same source. `work` must not throw. */
  take(source: FrameSource, work: () => void): void {
    const waiting = this.#waiting.get(source);
    if (waiting !== undefined) return void waiting.push(work);
    if (this.#hasTime()) return work();
    this.#waiting.set(source, [work]);
    source.pause();
  }

  #hasTime(): boolean {
    if (this.#until === 0) {
      this.#until = performance.now() + TURN_MS;
      this.#nextTurn();
      return true;
    }
    return performance.now() < this.#until;
  }

  #nextTurn(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#until = 0;
      if (this.#waiting.size > 0) this.#turn();
    });
  }

  /** One of each source, round after round, as long as there is time. */
  #turn(): void {
    this.#hasTime();
    while (this.#waiting.size > 0) {
      for (const [source, works] of this.#waiting) {
        works.shift()?.();
        if (works.length === 0) {
          this.#waiting.delete(source);
          source.resume();
        }
        if (!this.#hasTime()) return;
      }
    }
  }
}
