import type { Clock } from "../../base/time.ts";
import type { ClaimTable } from "./claim-table.ts";

interface Sighting {
  readonly version: number;
  readonly beat: number;
  readonly since: number;
}

/** When this process last saw each held claim change. Leases expire by time that passed here, never by another's clock. */
export class Sightings {
  readonly #table: ClaimTable;
  readonly #clock: Clock;
  readonly #seen = new Map<string, Sighting>();

  constructor(table: ClaimTable, clock: Clock) {
    this.#table = table;
    this.#clock = clock;
  }

  /** Looks at all claims there are. */
  lookAtAll(): void {
    for (const { id } of this.#table.claims()) this.look(id);
  }

  /** Looks at one claim, and says how long its holder must still be silent to lose it; 0: it may be taken. */
  look(id: string): number {
    const row = this.#table.claim(id);
    if (row?.state !== "held") {
      this.#seen.delete(id);
      return 0;
    }
    const { version } = this.#table.unchanged(id);
    const beat = this.#table.beat(id)?.beat ?? 0;
    const now = this.#clock.now();
    const before = this.#seen.get(id);
    const since = before?.version === version && before.beat === beat ? before.since : now;
    this.#seen.set(id, { version, beat, since });
    return Math.max(0, row.leaseMs - (now - since));
  }
}
