import { PerdureError } from "../base/error.ts";
import { type Clock, monotonicClock } from "../base/time.ts";
import type { Resident } from "./resident.ts";

/** Ended in one go: closing a database costs about half a millisecond. More while it is quick, as most have none open. */
const BATCH = 16;
const QUICK_MS = 4;
const SHORTEST_SWEEP_MS = 50;

/** How long and how many agents may stay. */
interface EvictionLimits {
  readonly clock: Clock;
  readonly idleMs: number;
  readonly maxLive: number;
}

/** Lets agents leave memory when nothing has needed them for a while, or when there are too many. */
export class Eviction {
  readonly #residents: Map<string, Resident>;
  readonly #count: { readonly live: number };
  readonly #limits: EvictionLimits;
  readonly #evicted: () => void;
  #cancel: (() => void) | undefined;

  /** @param evicted some have left: the earliest alarm may be another one now. */
  constructor(
    residents: Map<string, Resident>,
    count: { readonly live: number },
    limits: EvictionLimits,
    evicted: () => void,
  ) {
    this.#residents = residents;
    this.#count = count;
    this.#limits = limits;
    this.#evicted = evicted;
  }

  start(): void {
    this.#schedule(this.#limits.idleMs / 2);
  }

  stop(): void {
    this.#cancel?.();
  }

  /** @throws PerdureError `limit` when every agent in memory is at work. */
  makeRoom(): void {
    const { maxLive } = this.#limits;
    if (this.#count.live < maxLive) return;
    this.#sweep(0, 0);
    if (this.#count.live < maxLive) return;
    throw new PerdureError(
      "limit",
      `${maxLive} agents are at work, which is this host's limit. Try again, or raise \`limits.agents\`.`,
    );
  }

  #schedule(ms: number): void {
    this.#cancel = this.#limits.clock.after(Math.max(ms, SHORTEST_SWEEP_MS), () => {
      const more = this.#sweep(this.#limits.idleMs, QUICK_MS);
      this.#schedule(more ? SHORTEST_SWEEP_MS : this.#limits.idleMs / 2);
    });
  }

  /** @param quickMs how long it may go on after a batch @returns whether it stopped because it had done enough for one go. */
  #sweep(idleMs: number, quickMs: number): boolean {
    const before = this.#limits.clock.now() - idleMs;
    const begun = monotonicClock.now();
    let ended = 0;
    let more = false;
    for (const [id, resident] of this.#residents) {
      if (resident.live && !resident.busy && resident.lastUsed <= before) {
        resident.evict();
        ended++;
      }
      if (resident.empty) this.#residents.delete(id);
      more = ended >= BATCH && monotonicClock.now() - begun >= quickMs;
      if (more) break;
    }
    if (ended > 0) this.#evicted();
    return more;
  }
}
