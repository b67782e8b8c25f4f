import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import { sleep, type Clock, monotonicClock, within } from "../../base/time.ts";
import type { ClaimRecord, ClaimRow } from "../contract.ts";
import type { RowCollection } from "../log/rows.ts";
import type { Acquired, AcquireOptions, Claim, Claims, ClaimView, DeadLetter, Hold, HoldOptions } from "./claim.ts";
import { beatKey, openClaimTable, requireClaimId, type ClaimTable } from "./claim-table.ts";
import { HeldClaim } from "./held-claim.ts";
import { BEATS_PER_LEASE } from "./lifecycle.ts";
import { notify } from "../retry.ts";
import { Sightings } from "./sightings.ts";
import { standBy } from "./standby.ts";

const DEFAULT_LEASE_MS = 30_000;
const DEFAULT_ATTEMPTS = 5;
const DISPOSE_WAIT_MS = 5_000;
/** How often taking starts again because the rows were not as they were seen. */
const TAKE_TRIES = 20;
/** Wait between such tries, times their number: what refused the write is on its way to this reader. */
const TAKE_PAUSE_MS = 5;

/** What taking can come to. */
type Taken = { readonly claim: HeldClaim } | Exclude<Acquired, { claim: Claim }>;

/** What {@link createClaims} needs. */
export interface ClaimsOptions {
  /** Its key is `id`. On a log, and on the same one as what the claims protect. */
  readonly collection: RowCollection<ClaimRecord>;
  /**
   * The worker's name beyond its process: a new process takes over its claims at once, and the old one gets none. Must be unique
   * among live workers. Default: random.
   */
  readonly owner?: string;
  /** How long a holder must be silent before others take over. Default 30 s. */
  readonly leaseMs?: number;
  /** Default: a third of the lease. */
  readonly heartbeatMs?: number;
  /** How often work is begun before it is given up. Default 5. */
  readonly maxAttempts?: number;
  /** Called once for each claim that was lost (not: released). */
  onLost?(claim: Claim, reason: PerdureError): void;
  /** Time that nobody sets. For tests. */
  readonly clock?: Clock;
}

/**
 * Claims on the work of several executors. See {@link Claims}.
 * @throws PerdureError `bad_config` when the collection is not on a log, or the times cannot work.
 */
export function createClaims(options: ClaimsOptions): Claims {
  return new LogClaims(options);
}

class LogClaims implements Claims {
  readonly owner: string;
  readonly incarnation = newId();
  readonly ready: Promise<void>;
  readonly #table: ClaimTable;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #heartbeatMs: number;
  readonly #maxAttempts: number;
  readonly #onLost: ((claim: Claim, reason: PerdureError) => void) | undefined;
  readonly #sightings: Sightings;
  readonly #held = new Map<string, HeldClaim>();
  readonly #taking = new Set<string>();
  readonly #standbys = new Set<Hold>();
  readonly #listeners = new Set<() => void>();
  readonly #stopWatching: () => void;
  #superseded = false;
  #disposed = false;

  constructor(options: ClaimsOptions) {
    this.#table = openClaimTable(options.collection);
    this.owner = options.owner ?? newId("worker");
    this.#clock = options.clock ?? monotonicClock;
    this.#leaseMs = options.leaseMs ?? DEFAULT_LEASE_MS;
    this.#heartbeatMs = options.heartbeatMs ?? this.#leaseMs / BEATS_PER_LEASE;
    this.#maxAttempts = options.maxAttempts ?? DEFAULT_ATTEMPTS;
    this.#onLost = options.onLost?.bind(options);
    requireTimes(this.#leaseMs, this.#heartbeatMs, this.#maxAttempts);
    this.#sightings = new Sightings(this.#table, this.#clock);
    this.#stopWatching = this.#table.watch((ids, rowsChanged) => this.#changed(ids, rowsChanged));
    this.ready = this.#table.rows.ready().then(() => this.#sightings.lookAtAll());
    this.ready.catch(() => {});
  }

  get log() {
    return this.#table.log;
  }

  async acquire(id: string, options: AcquireOptions = {}): Promise<Acquired> {
    requireClaimId(id);
    const { signal } = options;
    signal?.throwIfAborted();
    this.#requireLife();
    await this.ready;
    if (this.#held.has(id) || this.#taking.has(id)) return { heldBy: this.owner, retryInMs: this.#leaseMs };
    const got = await this.#take(id, options);
    if (got.claim === undefined) return got;
    // What came between the write and here.
    got.claim.look();
    if (this.#disposed || signal?.aborted === true) {
      await got.claim.giveBack();
      signal?.throwIfAborted();
      this.#requireLife();
    }
    if (signal !== undefined) got.claim.follow(signal);
    return got;
  }

  hold(id: string, options: HoldOptions): Hold {
    requireClaimId(id);
    this.#requireLife();
    const standby = standBy(id, {
      onGained: (claim) => options.onGained(claim),
      onLost: (claim, reason) => options.onLost?.(claim, reason),
      onError: (error) => options.onError?.(error),
      onEnd: () => this.#standbys.delete(standby),
      claims: this,
      clock: this.#clock,
      pauseMs: this.#heartbeatMs,
    });
    this.#standbys.add(standby);
    return standby;
  }

  inspect(id: string): ClaimView {
    const row = this.#table.claim(id);
    const fence = this.#table.unchanged(id).version;
    if (row === undefined) return { state: "free", mine: false, attempt: 0, fence };
    const { owner, attempt } = row;
    const view = {
      owner,
      attempt,
      fence,
      mine: this.#held.has(id),
      ...(row.error === undefined ? {} : { error: row.error }),
    };
    if (row.state !== "held") return { ...view, state: row.state };
    const expiresInMs = this.#sightings.look(id);
    return { ...view, state: expiresInMs > 0 || view.mine ? "held" : "expired", expiresInMs };
  }

  async requestCancel(id: string, reason = "it was asked for"): Promise<boolean> {
    await this.ready;
    if (this.#table.claim(id)?.state !== "held") return false;
    const ask = (row: ClaimRecord) => void (row.kind === "beat" && (row.cancel = reason));
    return this.#table.rows.update(beatKey(id), ask, { when: [this.#table.unchanged(id)] });
  }

  deadLetters(): DeadLetter[] {
    return this.#table
      .claims()
      .filter(({ state }) => state === "dead")
      .map(letterOf);
  }

  async revive(id: string): Promise<boolean> {
    await this.ready;
    if (this.#table.claim(id)?.state !== "dead") return false;
    return this.#table.write([this.#table.remove(id)], [this.#table.unchanged(id)]);
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  async dispose(): Promise<void> {
    this.#disposed = true;
    const reason = new PerdureError("bad_state", "These claims were disposed: the work goes to somebody else.");
    for (const claim of this.#held.values()) claim.abort(reason);
    await Promise.all([...this.#standbys].map((standby) => standby.dispose()));
    const given = [...this.#held.values()].map((claim) => claim.giveBack().catch(() => false));
    // Bounded: the log may be out of reach, and then the leases run out.
    await within(this.#clock, DISPOSE_WAIT_MS, Promise.allSettled(given));
    this.#stopWatching();
  }

  async #take(id: string, { counted = true, maxAttempts = this.#maxAttempts }: AcquireOptions): Promise<Taken> {
    this.#taking.add(id);
    try {
      const got = await this.#tryTakes(id, counted, counted ? maxAttempts : Number.POSITIVE_INFINITY);
      if (got.claim !== undefined) this.#held.set(id, got.claim);
      return got;
    } finally {
      // From here on it is held or free. Who is told that it was given back must not find it as being taken.
      this.#taking.delete(id);
    }
  }

  /** Looks, judges and writes, again from the start as long as the rows were not as they were seen. */
  async #tryTakes(id: string, counted: boolean, maxAttempts: number): Promise<Taken> {
    const table = this.#table;
    for (let tries = 0; tries < TAKE_TRIES; tries++) {
      if (tries > 1) await sleep(this.#clock, tries * TAKE_PAUSE_MS);
      const row = table.claim(id);
      if (row?.state === "dead") return { dead: letterOf(row) };
      if (row?.state === "held" && row.owner !== this.owner) {
        const retryInMs = this.#sightings.look(id);
        if (retryInMs > 0) return { heldBy: row.owner, retryInMs };
      }
      const attempt = counted ? (row?.attempt ?? 0) + 1 : 1;
      if (row !== undefined && attempt > maxAttempts) {
        await this.#bury(row);
        continue;
      }
      const claim = await this.#tryTake(id, row, attempt, maxAttempts);
      if (claim !== undefined) return { claim };
    }
    return { heldBy: table.claim(id)?.owner ?? "", retryInMs: this.#heartbeatMs };
  }

  async #tryTake(
    id: string,
    before: ClaimRow | undefined,
    attempt: number,
    maxAttempts: number,
  ): Promise<HeldClaim | undefined> {
    const table = this.#table;
    const { owner, incarnation } = this;
    const error = before?.error === undefined ? {} : { error: before.error };
    const row: ClaimRow = {
      ...{ id, kind: "claim", owner, incarnation, state: "held", leaseMs: this.#leaseMs, attempt, ...error },
      updatedAt: new Date().toISOString(),
    };
    const takenAt = this.#clock.now();
    const changes = [
      table.put(before === undefined ? "insert" : "update", row),
      table.put("upsert", { id: beatKey(id), kind: "beat", beat: 0 }),
    ];
    // The silence is part of the condition: who cannot hear a holder that lives must not take over from it.
    const when = before === undefined ? [] : [table.unchanged(id), table.silent(id)];
    if (!(await table.write(changes, when))) return undefined;
    // What is behind the write in the log may be here already.
    if (table.claim(id)?.incarnation !== incarnation) return undefined;
    return new HeldClaim({
      ...{ table, clock: this.#clock, row, heartbeatMs: this.#heartbeatMs, maxAttempts, takenAt },
      fence: table.unchanged(id).version,
      onOver: (claim, lost) => this.#over(claim, lost),
    });
  }

  /** Gives up work whose last try has ended without a word. */
  async #bury(row: ClaimRow): Promise<void> {
    const table = this.#table;
    const error = row.error ?? `"${row.owner}" stopped without a result, and it was the last of ${row.attempt} tries.`;
    const dead: ClaimRow = { ...row, state: "dead", error, updatedAt: new Date().toISOString() };
    const when = [table.unchanged(row.id), table.silent(row.id)];
    await table.write([...table.withoutBeat(row.id), table.put("update", dead)], when);
  }

  #changed(ids: readonly string[] | undefined, rowsChanged: boolean): void {
    if (ids === undefined) this.#sightings.lookAtAll();
    for (const id of ids ?? this.#held.keys()) {
      this.#sightings.look(id);
      this.#held.get(id)?.look();
    }
    if (rowsChanged) this.#tell();
  }

  #tell(): void {
    for (const listener of this.#listeners) notify(listener);
  }

  #over(claim: HeldClaim, lost: PerdureError | undefined): void {
    this.#held.delete(claim.id);
    if (lost !== undefined) {
      const row = this.#table.claim(claim.id);
      // Only a later life of this owner takes a claim from this one.
      if (row?.owner === this.owner && row.incarnation !== this.incarnation) this.#superseded = true;
      notify(() => this.#onLost?.(claim, lost));
    }
    // Who was told of its rows and asked at once was refused: it still counted as held here.
    this.#tell();
  }

  #requireLife(): void {
    if (this.#disposed) throw new PerdureError("bad_state", "These claims were disposed: create new ones.");
    if (!this.#superseded) return;
    throw new PerdureError(
      "fenced",
      `Another process now works as "${this.owner}": stop this one, or give each its own \`owner\`.`,
    );
  }
}

/** What is told of work that was given up. */
function letterOf({ id, error, attempt, owner, updatedAt }: ClaimRow): DeadLetter {
  return { id, error: error ?? "", attempt, owner, updatedAt };
}

function requireTimes(leaseMs: number, heartbeatMs: number, maxAttempts: number): void {
  // A beat that comes behind the point where the holder gives up would be none.
  if (leaseMs > 0 && heartbeatMs > 0 && heartbeatMs <= leaseMs / 2 && maxAttempts >= 1) return;
  throw new PerdureError(
    "bad_config",
    `Claims with a lease of ${leaseMs} ms, heartbeats of ${heartbeatMs} ms and ${maxAttempts} attempts cannot work: ` +
      "heartbeats must come at least twice in a lease, and there must be one attempt.",
  );
}
