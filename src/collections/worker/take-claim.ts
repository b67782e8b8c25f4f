import type { PerdureError } from "../../base/error.ts";
import { sleep } from "../../base/id.ts";
import type { Clock } from "../../base/id.ts";
import type { ClaimRow } from "../contract.ts";
import { beatKey } from "./claim-table.ts";
import type { ClaimTable } from "./claim-table.ts";
import type { Acquired, Claim, DeadLetter } from "./claim.ts";
import { HeldClaim } from "./held-claim.ts";

interface Sighting {
  readonly version: number;
  readonly beat: number;
  readonly since: number;
}

/**
 * When this process has last seen each held claim change. No clock of another machine is asked: a lease has run out
 * when its holder was silent for as long as the lease, by the time that passed here.
 */
export class Sightings {
  private readonly table: ClaimTable;
  private readonly clock: Clock;
  private readonly seen = new Map<string, Sighting>();

  constructor(table: ClaimTable, clock: Clock) {
    this.table = table;
    this.clock = clock;
  }

  /** Looks at all claims there are. */
  lookAtAll(): void {
    for (const { id } of this.table.claims()) this.look(id);
  }

  /** Looks at one claim, and says how long its holder must still be silent to lose it; 0: it may be taken. */
  look(id: string): number {
    const row = this.table.claim(id);
    if (row?.state !== "held") {
      this.seen.delete(id);
      return 0;
    }
    const { version } = this.table.unchanged(id);
    const beat = this.table.beat(id)?.beat ?? 0;
    const now = this.clock.now();
    const before = this.seen.get(id);
    const since = before?.version === version && before.beat === beat ? before.since : now;
    this.seen.set(id, { version, beat, since });
    return Math.max(0, row.leaseMs - (now - since));
  }
}

/** How often taking starts again because the rows were not as they were seen. */
const TAKE_TRIES = 20;
/** Wait between such tries, times their number: what refused the write is on its way to this reader. */
const TAKE_PAUSE_MS = 5;

/** What taking needs to know. */
interface TakerOptions {
  readonly table: ClaimTable;
  readonly clock: Clock;
  readonly sightings: Sightings;
  readonly owner: string;
  readonly incarnation: string;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  onOver(claim: HeldClaim, lost: PerdureError | undefined): void;
}

/** How often the work may be begun. */
interface TakeLimit {
  readonly counted: boolean;
  readonly maxAttempts: number;
}

/** What taking can come to. */
export type Taken = { readonly claim: HeldClaim } | Exclude<Acquired, { claim: Claim }>;

/** Takes claims for one life of one owner. */
export class Taker {
  private readonly options: TakerOptions;

  constructor(options: TakerOptions) {
    this.options = options;
  }

  /** Looks, judges and writes, again from the start as long as the rows were not as they were seen. */
  async take(id: string, limit: TakeLimit): Promise<Taken> {
    const { table, clock, owner, sightings, heartbeatMs } = this.options;
    for (let tries = 0; tries < TAKE_TRIES; tries++) {
      if (tries > 1) await sleep(clock, tries * TAKE_PAUSE_MS);
      const row = table.claim(id);
      if (row?.state === "dead") return { dead: letterOf(row) };
      if (row?.state === "held" && row.owner !== owner) {
        const retryInMs = sightings.look(id);
        if (retryInMs > 0) return { heldBy: row.owner, retryInMs };
      }
      const attempt = limit.counted ? (row?.attempt ?? 0) + 1 : 1;
      if (row !== undefined && attempt > limit.maxAttempts) {
        await this.bury(row);
        continue;
      }
      const claim = await this.tryTake(id, row, attempt, limit.maxAttempts);
      if (claim !== undefined) return { claim };
    }
    return { heldBy: table.claim(id)?.owner ?? "", retryInMs: heartbeatMs };
  }

  private async tryTake(
    id: string,
    before: ClaimRow | undefined,
    attempt: number,
    maxAttempts: number,
  ): Promise<HeldClaim | undefined> {
    const { table, clock, owner, incarnation, leaseMs, heartbeatMs } = this.options;
    const error = before?.error === undefined ? {} : { error: before.error };
    const row: ClaimRow = {
      ...{ id, kind: "claim", owner, incarnation, state: "held", leaseMs, attempt, ...error },
      updatedAt: new Date().toISOString(),
    };
    const takenAt = clock.now();
    const changes = [
      table.put(before === undefined ? "insert" : "update", row),
      table.put("upsert", { id: beatKey(id), kind: "beat", beat: 0 }),
    ];
    // The silence is part of the condition: who cannot hear a holder that lives must not take over from it.
    const when = before === undefined ? [] : [table.unchanged(id), table.silent(id)];
    if (!(await table.write(changes, when))) return undefined;
    // What is behind the write in the log may be here already.
    if (table.claim(id)?.incarnation !== incarnation) return undefined;
    const fence = table.unchanged(id).version;
    const onOver: TakerOptions["onOver"] = (claim, lost) => this.options.onOver(claim, lost);
    return new HeldClaim({ table, clock, row, fence, heartbeatMs, maxAttempts, takenAt, onOver });
  }

  /** Gives up work whose last try has ended without a word. */
  private async bury(row: ClaimRow): Promise<void> {
    const { table } = this.options;
    const error = row.error ?? `"${row.owner}" stopped without a result, and it was the last of ${row.attempt} tries.`;
    const dead: ClaimRow = { ...row, state: "dead", error, updatedAt: new Date().toISOString() };
    const when = [table.unchanged(row.id), table.silent(row.id)];
    await table.write([...table.withoutBeat(row.id), table.put("update", dead)], when);
  }
}

/** What is told of work that was given up. */
export function letterOf({ id, error, attempt, owner, updatedAt }: ClaimRow): DeadLetter {
  return { id, error: error ?? "", attempt, owner, updatedAt };
}
