import type { ApprovalEvent } from "../contract.ts";
import { indexRows, type RowIndex } from "../log/row-index.ts";
import { rowsOf, type RowCollection } from "../log/rows.ts";

/** Where the approval of a tool call is. `none`: nobody has asked, and nobody has decided. */
export type ApprovalStatus = "none" | "pending" | "approved" | "denied" | "expired";

interface ApprovalRound {
  readonly status: ApprovalStatus;
  /** The latest request. */
  readonly request?: ApprovalEvent;
  /** The event that decided it. */
  readonly decision?: ApprovalEvent;
}

/**
 * Reduces one call's events, in order. The latest request opens a round; the first decision after it closes it for good, since it
 * may have been acted upon, and only a new request reopens it. Without a request the first decision counts.
 */
function roundOf(ordered: readonly ApprovalEvent[]): ApprovalRound {
  let request: ApprovalEvent | undefined;
  let decision: ApprovalEvent | undefined;
  for (const event of ordered) {
    if (event.action === "requested") [request, decision] = [event, undefined];
    else decision ??= event;
  }
  const status = decision === undefined || decision.action === "requested" ? undefined : decision.action;
  return { status: status ?? (request === undefined ? "none" : "pending"), request, decision };
}

/**
 * The approval status of a call: the first decision after its latest request, ordered by `seq` (`orderAs: "seq"`), which is the
 * same on all devices, or by timestamp where events have none.
 */
export function getApprovalStatus(events: Iterable<ApprovalEvent>, toolCallId: string): ApprovalStatus {
  const own = [...events].filter((event) => event.toolCallId === toolCallId);
  return roundOf(inOrder(own)).status;
}

/** Events by their place in the log, or by their time if not all of them tell it. */
function inOrder(events: readonly ApprovalEvent[]): ApprovalEvent[] {
  const placed = events.every(({ seq }) => seq !== undefined);
  return events.toSorted((a, b) => {
    if (placed) return (a.seq ?? 0) - (b.seq ?? 0);
    return compare(a.timestamp, b.timestamp) || compare(a.id, b.id);
  });
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The events by their calls, kept current as long as somebody follows them. */
export class ApprovalTrail {
  readonly #events: RowCollection<ApprovalEvent>;
  readonly #isOnLog: boolean;
  #followers = 0;
  #byCall: RowIndex<ApprovalEvent> | undefined;
  /** The calls whose request nobody has decided, with that request's id. */
  readonly #open = new Map<string, string>();

  constructor(events: RowCollection<ApprovalEvent>) {
    this.#events = events;
    this.#isOnLog = rowsOf(events).log !== undefined;
  }

  /** What was said about a call, in order. */
  of(toolCallId: string): readonly ApprovalEvent[] {
    return this.#read((index) => this.#inOrder(index.rows(toolCallId)));
  }

  round(toolCallId: string): ApprovalRound {
    return roundOf(this.of(toolCallId));
  }

  /** The requests that nobody has decided, the oldest first. */
  pending(): ApprovalEvent[] {
    return this.#read((index) => {
      // Not on a log, what was written here may not have been told yet.
      if (!this.#isOnLog) this.#judge(index.names());
      const events = index.rows(...this.#open.keys());
      return this.#inOrder(events.filter(({ id, toolCallId }) => this.#open.get(toolCallId) === id));
    });
  }

  /** Calls the listener after events have come, when they can be read here. Returns its end. */
  follow(listener: () => void): () => void {
    // First, so that who is told can read it here. Each is told by the collection: one that throws stops no other.
    if (this.#followers++ === 0) this.#start();
    const unsubscribe = rowsOf(this.#events).subscribe(listener);
    let ended = false;
    return () => {
      unsubscribe();
      if (!ended && --this.#followers === 0) this.#stop();
      ended = true;
    };
  }

  /** Without followers, what is read is true for this moment only. */
  #read<T>(look: (index: RowIndex<ApprovalEvent>) => T): T {
    if (this.#byCall !== undefined) return look(this.#byCall);
    const index = this.#start();
    try {
      return look(index);
    } finally {
      this.#stop();
    }
  }

  #start(): RowIndex<ApprovalEvent> {
    const judge = (calls: Iterable<string>) => this.#judge(calls);
    const index = (this.#byCall = indexRows(this.#events, (event) => event.toolCallId, judge));
    judge(index.names());
    return index;
  }

  #stop(): void {
    this.#byCall?.stop();
    this.#byCall = undefined;
    this.#open.clear();
  }

  #judge(calls: Iterable<string>): void {
    for (const call of calls) {
      const { status, request } = this.round(call);
      if (status === "pending" && request !== undefined) this.#open.set(call, request.id);
      else this.#open.delete(call);
    }
  }

  /** On a log they are in its order, which not all of them show. */
  #inOrder(events: ApprovalEvent[]): ApprovalEvent[] {
    return this.#isOnLog ? events : inOrder(events);
  }
}
