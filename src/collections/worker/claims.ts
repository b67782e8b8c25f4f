import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import type { Clock } from "../../base/id.ts";
import type { ClaimRecord } from "../contract.ts";
import type { RowCollection } from "../log/rows.ts";
import type { Acquired, AcquireOptions, Claim, Claims, ClaimView, DeadLetter, Hold, HoldOptions } from "./claim.ts";
import { beatKey, openClaimTable, requireClaimId } from "./claim-table.ts";
import type { ClaimTable } from "./claim-table.ts";
import type { HeldClaim } from "./held-claim.ts";
import { BEATS_PER_LEASE } from "./lifecycle.ts";
import { notify } from "../retry.ts";
import { monotonicClock, within } from "../timer.ts";
import { Sightings } from "./take-claim.ts";
import { Standby } from "./standby.ts";
import { letterOf, Taker } from "./take-claim.ts";
import type { Taken } from "./take-claim.ts";

const DEFAULT_LEASE_MS = 30_000;
const DEFAULT_ATTEMPTS = 5;
const DISPOSE_WAIT_MS = 5_000;

/** What {@link createClaims} needs. */
export interface ClaimsOptions {
  /** Its key is `id`. On a log, and on the same one as what the claims protect. */
  readonly collection: RowCollection<ClaimRecord>;
  /**
   * The worker, under a name that outlives its process: a new process of the same owner takes over its claims at
   * once, and the old one gets none any more. Two that live at the same time need different names. Default: random.
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
  private readonly table: ClaimTable;
  private readonly clock: Clock;
  private readonly leaseMs: number;
  private readonly heartbeatMs: number;
  private readonly maxAttempts: number;
  private readonly onLost: ((claim: Claim, reason: PerdureError) => void) | undefined;
  private readonly sightings: Sightings;
  private readonly taker: Taker;
  private readonly held = new Map<string, HeldClaim>();
  private readonly taking = new Set<string>();
  private readonly standbys = new Set<Standby>();
  private readonly listeners = new Set<() => void>();
  private readonly stopWatching: () => void;
  private superseded = false;
  private disposed = false;

  constructor(options: ClaimsOptions) {
    this.table = openClaimTable(options.collection);
    this.owner = options.owner ?? newId("worker");
    this.clock = options.clock ?? monotonicClock;
    this.leaseMs = options.leaseMs ?? DEFAULT_LEASE_MS;
    this.heartbeatMs = options.heartbeatMs ?? this.leaseMs / BEATS_PER_LEASE;
    this.maxAttempts = options.maxAttempts ?? DEFAULT_ATTEMPTS;
    this.onLost = options.onLost?.bind(options);
    requireTimes(this.leaseMs, this.heartbeatMs, this.maxAttempts);
    this.sightings = new Sightings(this.table, this.clock);
    this.taker = new Taker({
      table: this.table,
      clock: this.clock,
      sightings: this.sightings,
      owner: this.owner,
      incarnation: this.incarnation,
      leaseMs: this.leaseMs,
      heartbeatMs: this.heartbeatMs,
      onOver: (claim, lost) => this.over(claim, lost),
    });
    this.stopWatching = this.table.watch((ids, rowsChanged) => this.changed(ids, rowsChanged));
    this.ready = this.table.rows.ready().then(() => this.sightings.lookAtAll());
    this.ready.catch(() => {});
  }

  get log() {
    return this.table.log;
  }

  async acquire(id: string, options: AcquireOptions = {}): Promise<Acquired> {
    requireClaimId(id);
    const { signal } = options;
    signal?.throwIfAborted();
    this.requireLife();
    await this.ready;
    if (this.held.has(id) || this.taking.has(id)) return { heldBy: this.owner, retryInMs: this.leaseMs };
    const got = await this.take(id, options);
    if (got.claim === undefined) return got;
    // What came between the write and here.
    got.claim.look();
    if (this.disposed || signal?.aborted === true) {
      await got.claim.giveBack();
      signal?.throwIfAborted();
      this.requireLife();
    }
    if (signal !== undefined) got.claim.follow(signal);
    return got;
  }

  hold(id: string, options: HoldOptions): Hold {
    requireClaimId(id);
    this.requireLife();
    const standby = new Standby(id, {
      onGained: (claim) => options.onGained(claim),
      onLost: (claim, reason) => options.onLost?.(claim, reason),
      onError: (error) => options.onError?.(error),
      onEnd: (ended) => this.standbys.delete(ended),
      claims: this,
      clock: this.clock,
      pauseMs: this.heartbeatMs,
    });
    this.standbys.add(standby);
    return standby;
  }

  inspect(id: string): ClaimView {
    const row = this.table.claim(id);
    const fence = this.table.unchanged(id).version;
    if (row === undefined) return { state: "free", mine: false, attempt: 0, fence };
    const { owner, attempt } = row;
    const view = {
      owner,
      attempt,
      fence,
      mine: this.held.has(id),
      ...(row.error === undefined ? {} : { error: row.error }),
    };
    if (row.state !== "held") return { ...view, state: row.state };
    const expiresInMs = this.sightings.look(id);
    return { ...view, state: expiresInMs > 0 || view.mine ? "held" : "expired", expiresInMs };
  }

  async requestCancel(id: string, reason = "it was asked for"): Promise<boolean> {
    await this.ready;
    if (this.table.claim(id)?.state !== "held") return false;
    const ask = (row: ClaimRecord) => void (row.kind === "beat" && (row.cancel = reason));
    return this.table.rows.update(beatKey(id), ask, { when: [this.table.unchanged(id)] });
  }

  deadLetters(): DeadLetter[] {
    return this.table
      .claims()
      .filter(({ state }) => state === "dead")
      .map(letterOf);
  }

  async revive(id: string): Promise<boolean> {
    await this.ready;
    if (this.table.claim(id)?.state !== "dead") return false;
    return this.table.write([this.table.remove(id)], [this.table.unchanged(id)]);
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  async dispose(): Promise<void> {
    this.disposed = true;
    const reason = new PerdureError("bad_state", "These claims were disposed: the work goes to somebody else.");
    for (const claim of this.held.values()) claim.abort(reason);
    await Promise.all([...this.standbys].map((standby) => standby.dispose()));
    const given = [...this.held.values()].map((claim) => claim.giveBack().catch(() => false));
    // Bounded: the log may be out of reach, and then the leases run out.
    await within(this.clock, DISPOSE_WAIT_MS, Promise.all(given));
    this.stopWatching();
  }

  private async take(id: string, options: AcquireOptions): Promise<Taken> {
    const limit = options.counted === false ? Number.POSITIVE_INFINITY : (options.maxAttempts ?? this.maxAttempts);
    this.taking.add(id);
    try {
      const got = await this.taker.take(id, { counted: options.counted ?? true, maxAttempts: limit });
      if (got.claim !== undefined) this.held.set(id, got.claim);
      return got;
    } finally {
      // From here on it is held or free. Who is told that it was given back must not find it as being taken.
      this.taking.delete(id);
    }
  }

  private changed(ids: readonly string[] | undefined, rowsChanged: boolean): void {
    if (ids === undefined) this.sightings.lookAtAll();
    for (const id of ids ?? this.held.keys()) {
      this.sightings.look(id);
      this.held.get(id)?.look();
    }
    if (rowsChanged) this.tell();
  }

  private tell(): void {
    for (const listener of this.listeners) notify(listener);
  }

  private over(claim: HeldClaim, lost: PerdureError | undefined): void {
    this.held.delete(claim.id);
    if (lost !== undefined) {
      const row = this.table.claim(claim.id);
      // Only a later life of this owner takes a claim from this one.
      if (row?.owner === this.owner && row.incarnation !== this.incarnation) this.superseded = true;
      notify(() => this.onLost?.(claim, lost));
    }
    // Who was told of its rows and asked at once was refused: it still counted as held here.
    this.tell();
  }

  private requireLife(): void {
    if (this.disposed) throw new PerdureError("bad_state", "These claims were disposed: make new ones.");
    if (!this.superseded) return;
    throw new PerdureError(
      "fenced",
      `Another process works as "${this.owner}" now: stop this one, or give each its own \`owner\`.`,
    );
  }
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
