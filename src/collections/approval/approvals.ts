import { newId } from "../../base/id.ts";
import { type Clock, monotonicClock } from "../../base/time.ts";
import type { ApprovalEvent } from "../contract.ts";
import { asError, notify } from "../retry.ts";
import { rowsOf, type RowCollection, type Rows } from "../log/rows.ts";
import { waitUntil } from "../wait-until.ts";
import { ApprovalTrail, type ApprovalStatus } from "./trail.ts";

/** Who says it, and why. */
interface ApprovalBy {
  /** A person's id, or an agent's name. It is what the trail shows: check who it is before you pass it on. */
  readonly actorId: string;
  readonly reason?: string;
}

/** How a question can have been answered. */
type ApprovalDecision = "approved" | "denied" | "expired";

/** The actor of events that were made because time ran out. */
const NOBODY = "perdure:expiry";

/**
 * Asks people before tools run. Requests and answers are events in a collection that syncs to all devices; none is ever changed
 * or deleted, so they are the audit trail. Status follows from log order and is the same everywhere: the first decision after the
 * latest request wins. Later ones are kept but change nothing, because the first may have been acted upon. On a log, a decision
 * on a request that is no longer the latest is not written.
 */
export interface Approvals extends Disposable {
  /** Resolves when the events that were there are here; rejects when they cannot be read. */
  readonly ready: Promise<void>;
  /**
   * Asks. Any number of processes may ask about the same call: that is one event, and a decided one is not reopened, unless
   * `again` opens a new round because the call has changed.
   * @returns the status that now holds.
   */
  request(toolCallId: string, by: ApprovalBy & { readonly again?: boolean }): Promise<ApprovalStatus>;
  /** Says yes. @returns the status that now holds, which is another one if somebody else was first. */
  approve(toolCallId: string, by: ApprovalBy): Promise<ApprovalStatus>;
  /** Says no. @returns as `approve`. */
  deny(toolCallId: string, by: ApprovalBy): Promise<ApprovalStatus>;
  /** Says that it is too late for an answer. @returns as `approve`. */
  expire(toolCallId: string, by?: ApprovalBy): Promise<ApprovalStatus>;
  /** As confirmed by the log: what this device has not yet sent does not count. */
  status(toolCallId: string): ApprovalStatus;
  /** The event that decided the latest request: who it was, and why. */
  decision(toolCallId: string): ApprovalEvent | undefined;
  /** Everything that was said about a call, in order. */
  history(toolCallId: string): ApprovalEvent[];
  /** The requests that wait for an answer, the oldest first. */
  pending(): ApprovalEvent[];
  /** Waits for a decision. Rejects with the reason of `signal`. */
  decided(toolCallId: string, options?: { readonly signal?: AbortSignal }): Promise<ApprovalDecision>;
  /** Called after events have come. */
  subscribe(listener: () => void): () => void;
  /** Stops listening and expiring. Waits of `decided` go on until their signals end them. */
  dispose(): void;
}

interface ApprovalsOptions {
  /** Its key is `id`. With `orderAs: "seq"`, `getApprovalStatus` works on what queries select, too. */
  readonly events: RowCollection<ApprovalEvent>;
  /**
   * Expires requests that this process has seen waiting that long, by its own time: no clocks are compared, and a restarted
   * process counts from the beginning. Default: never.
   */
  readonly expiresAfterMs?: number;
  /** Called when an expiry could not be written; it is tried again with the next change. */
  onError?(error: Error): void;
  /** For tests. */
  readonly clock?: Clock;
}

/** Approvals in a collection of events. On a log several devices may answer at once; see {@link Approvals}. */
export function createApprovals(options: ApprovalsOptions): Approvals {
  return new EventApprovals(options);
}

class EventApprovals implements Approvals {
  readonly ready: Promise<void>;
  readonly #options: ApprovalsOptions;
  readonly #rows: Rows<ApprovalEvent>;
  readonly #trail: ApprovalTrail;
  readonly #listeners = new Set<() => void>();
  /** The timers of requests that wait, by their event. */
  readonly #expiries = new Map<string, () => void>();
  readonly #stop: () => void;
  #disposed = false;

  constructor(options: ApprovalsOptions) {
    this.#options = options;
    this.#rows = rowsOf(options.events);
    this.#trail = new ApprovalTrail(options.events);
    this.#stop = this.#trail.follow(() => this.#changed());
    this.ready = this.#rows.ready().then(() => this.#changed());
    this.ready.catch(() => {});
  }

  async request(toolCallId: string, by: ApprovalBy & { readonly again?: boolean }): Promise<ApprovalStatus> {
    await this.ready;
    const asked = this.#rounds(toolCallId);
    const decided = this.#trail.round(toolCallId).decision !== undefined;
    if (asked > 0 && !(by.again === true && decided)) return this.status(toolCallId);
    // Of all who ask in this round the log takes one.
    await this.#add(requestId(toolCallId, asked + 1), toolCallId, "requested", by);
    return this.status(toolCallId);
  }

  approve(toolCallId: string, by: ApprovalBy): Promise<ApprovalStatus> {
    return this.#decide(toolCallId, "approved", by);
  }

  deny(toolCallId: string, by: ApprovalBy): Promise<ApprovalStatus> {
    return this.#decide(toolCallId, "denied", by);
  }

  expire(toolCallId: string, by: ApprovalBy = { actorId: NOBODY }): Promise<ApprovalStatus> {
    return this.#decide(toolCallId, "expired", by);
  }

  status(toolCallId: string): ApprovalStatus {
    return this.#trail.round(toolCallId).status;
  }

  decision(toolCallId: string): ApprovalEvent | undefined {
    return this.#trail.round(toolCallId).decision;
  }

  history(toolCallId: string): ApprovalEvent[] {
    return [...this.#trail.of(toolCallId)];
  }

  pending(): ApprovalEvent[] {
    return this.#trail.pending();
  }

  async decided(toolCallId: string, { signal }: { signal?: AbortSignal } = {}): Promise<ApprovalDecision> {
    signal?.throwIfAborted();
    await this.ready;
    const look = () => {
      const status = this.status(toolCallId);
      return status === "none" || status === "pending" ? undefined : status;
    };
    // By the trail: it goes on when these approvals are disposed.
    return waitUntil((again) => this.#trail.follow(again), look, { signal });
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  dispose(): void {
    this.#disposed = true;
    this.#stop();
    for (const cancel of this.#expiries.values()) cancel();
    this.#expiries.clear();
    this.#listeners.clear();
  }

  async #decide(toolCallId: string, action: ApprovalDecision, by: ApprovalBy): Promise<ApprovalStatus> {
    await this.ready;
    await this.#add(newId(), toolCallId, action, by);
    return this.status(toolCallId);
  }

  async #add(id: string, toolCallId: string, action: ApprovalEvent["action"], by: ApprovalBy): Promise<void> {
    const timestamp = this.#timestamp(toolCallId);
    const event = { id, toolCallId, action, actorId: by.actorId, timestamp, reason: by.reason };
    const rounds = this.#rounds(toolCallId);
    // Behind a request that was not seen, a decision would allow what nobody has looked at. The first one may be
    // unseen: whoever decides by the call alone means it.
    const next = rounds === 0 ? undefined : this.#rows.unchanged(requestId(toolCallId, rounds + 1));
    await this.#rows.insert(event, next === undefined ? {} : { when: [next] });
  }

  /** Now; but where nothing else tells the order of events, later than those of the call before it. */
  #timestamp(toolCallId: string): string {
    const last = this.#rows.log === undefined ? this.#trail.of(toolCallId).at(-1) : undefined;
    const after = last === undefined ? 0 : Date.parse(last.timestamp) + 1;
    return new Date(Math.max(Date.now(), Number.isNaN(after) ? 0 : after)).toISOString();
  }

  /** How often it was asked for. */
  #rounds(toolCallId: string): number {
    return this.#trail.of(toolCallId).filter(({ action }) => action === "requested").length;
  }

  #changed(): void {
    this.#watchExpiries();
    for (const listener of this.#listeners) notify(listener);
  }

  #watchExpiries(): void {
    const { expiresAfterMs, clock = monotonicClock } = this.#options;
    if (expiresAfterMs === undefined || this.#disposed) return;
    const open = new Map(this.#trail.pending().map((request) => [request.id, request]));
    for (const [id, cancel] of this.#expiries) {
      if (open.has(id)) continue;
      cancel();
      this.#expiries.delete(id);
    }
    for (const [id, request] of open) {
      if (this.#expiries.has(id)) continue;
      this.#expiries.set(
        id,
        clock.after(expiresAfterMs, () => void this.#runOut(request)),
      );
    }
  }

  async #runOut({ id, toolCallId }: ApprovalEvent): Promise<void> {
    try {
      // All devices that count write the same event, so that the trail has it once.
      await this.#add(`${id}:expired`, toolCallId, "expired", { actorId: NOBODY });
    } catch (error) {
      this.#expiries.delete(id);
      notify(() => this.#options.onError?.(asError(error)));
    }
  }
}

/** A name that all who ask in the same round have in common. */
function requestId(toolCallId: string, round: number): string {
  return `${toolCallId}:requested:${round}`;
}
