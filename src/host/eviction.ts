import { PerdureError } from "../base/error.ts";
import type { Clock } from "../base/time.ts";
import type { Resident } from "./resident.ts";

/** Ended in one go: closing a database costs about half a millisecond. */
const BATCH = 16;
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
    this.#sweep(0, BATCH);
    if (this.#count.live < maxLive) return;
    throw new PerdureError(
      "limit",
      `${maxLive} agents are at work, which is this host's limit. Try again, or raise \`limits.agents\`.`,
    );
  }

  #schedule(ms: number): void {
    this.#cancel = this.#limits.clock.after(Math.max(ms, SHORTEST_SWEEP_MS), () => {
      const more = this.#sweep(this.#limits.idleMs, BATCH);
      this.#schedule(more ? SHORTEST_SWEEP_MS : this.#limits.idleMs / 2);
    });
  }

  /** @returns whether it stopped because it had done enough for one go. */
  #sweep(idleMs: number, batch: number): boolean {
    const before = this.#limits.clock.now() - idleMs;
    let ended = 0;
    for (const [id, resident] of this.#residents) {
      if (resident.live && !resident.busy && resident.lastUsed <= before) {
        resident.evict();
        ended++;
      }
      if (resident.empty) this.#residents.delete(id);
      if (ended >= batch) break;
    }
    if (ended > 0) this.#evicted();
    return ended >= batch;
  }
}
