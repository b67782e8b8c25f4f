// What goes wrong in a run, and how often: chosen once by the seed, asked at every occasion.
import { hashOf, type Random, random } from "../think/interleave-random.ts";

/** How unlucky a run is, each from 0 to 1. */
export interface Luck {
  readonly slowSync: number;
  readonly badSync: number;
  readonly badWrite: number;
  readonly twice: number;
  readonly slowNet: number;
}

const SHORT_MS = 5;
const LONG_MS = 400;
const VERY_LONG_MS = 4_000;

export class Faults {
  readonly #chance: Random;
  readonly #luck: Luck;
  /** No more bad luck: the run is to come to rest. */
  over = false;
  /** While the disk is full, so many of the writes fail. */
  full = 0;

  constructor(seed: number) {
    const chance = random(hashOf(`luck ${seed}`));
    this.#chance = random(hashOf(`faults ${seed}`));
    const maybe = (often: number, most: number) => (chance.chance(often) ? chance.next() * most : 0);
    this.#luck = {
      slowSync: maybe(0.7, 0.8),
      badSync: maybe(0.3, 0.05),
      badWrite: maybe(0.3, 0.03),
      twice: maybe(0.6, 0.2),
      slowNet: maybe(0.7, 0.7),
    };
  }

  sync(): { readonly fails: boolean; readonly ms: number } {
    const { slowSync, badSync } = this.#luck;
    const slow = this.#chance.chance(slowSync);
    const ms = slow ? 1 + this.#chance.int(this.#chance.chance(0.2) ? LONG_MS : SHORT_MS * 4) : 0;
    const fails = this.#chance.chance(badSync);
    return this.over ? { fails: false, ms: 0 } : { fails, ms };
  }

  write(): "full" | "undone" | undefined {
    if (this.over) return undefined;
    const bad = this.full > 0 ? 0.5 : this.#luck.badWrite;
    if (this.full > 0) this.full--;
    if (bad === 0 || !this.#chance.chance(bad)) return undefined;
    return this.#chance.chance(0.5) ? "full" : "undone";
  }

  /** Milliseconds until a frame arrives. */
  latency(): number {
    if (this.over || !this.#chance.chance(this.#luck.slowNet)) return 0;
    if (this.#chance.chance(0.03)) return this.#chance.int(VERY_LONG_MS);
    return this.#chance.int(this.#chance.chance(0.2) ? LONG_MS : SHORT_MS);
  }

  twice(): boolean {
    return !this.over && this.#chance.chance(this.#luck.twice);
  }

  lostInFlight(): boolean {
    return this.#chance.chance(0.5);
  }
}
