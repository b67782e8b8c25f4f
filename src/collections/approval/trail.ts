import type { ApprovalEvent } from "../contract.ts";
import { logUtilsOf } from "../log/collection-options.ts";
import { indexRows, type RowIndex } from "../log/row-index.ts";
import { rowsOf, type RowCollection, type Rows } from "../log/rows.ts";

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
 * What the events of one call, in their order, come to. The latest request opens a round, and the first decision
 * behind it closes the round for good: a later one is kept in the trail but changes nothing, because the first may
 * have been acted upon already. Only a new request opens the question again. Without any request the first decision
 * counts.
 */
function roundOf(ordered: readonly ApprovalEvent[]): ApprovalRound {
  let request: ApprovalEvent | undefined;
  let decision: ApprovalEvent | undefined;
  for (const event of ordered) {
    if (event.action === "requested") [request, decision] = [event, undefined];
    else decision ??= event;
  }
  const status = decision === undefined || decision.action === "requested" ? undefined : decision.action;
  return {
    status: status ?? (request === undefined ? "none" : "pending"),
    ...(request === undefined ? {} : { request }),
    ...(decision === undefined ? {} : { decision }),
  };
}

/**
 * The status of a call's approval by all events of a collection: the first decision behind the latest request. The
 * order is that of `seq` (`orderAs: "seq"`), which is the same on all devices; only where events have none, that of
 * their timestamps.
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

/** The events as they are asked for. */
export interface ApprovalTrail {
  /** What was said about a call, in order. */
  of(toolCallId: string): readonly ApprovalEvent[];
  round(toolCallId: string): ApprovalRound;
  /** The requests that nobody has decided, the oldest first. */
  pending(): readonly ApprovalEvent[];
  /** Calls the listener after events have come, when they can be read here. Returns its end. */
  follow(listener: () => void): () => void;
  /** Something was written here, and nobody may have told of it yet. */
  refresh(): void;
}

/** On a log each event costs as much as its call has events; elsewhere all of them are read again when one has come. */
export function openTrail(events: RowCollection<ApprovalEvent>): ApprovalTrail {
  const rows = rowsOf(events);
  return rows.log === undefined ? new ReadTrail(rows) : new LogTrail(events);
}

/** All events in their order, and the same by the call that they are about. */
interface Read {
  readonly events: readonly ApprovalEvent[];
  readonly byCall: ReadonlyMap<string, readonly ApprovalEvent[]>;
}

/** By reading everything again when something has changed. */
class ReadTrail implements ApprovalTrail {
  readonly #rows: Rows<ApprovalEvent>;
  #known: Read | undefined;
  #open: readonly ApprovalEvent[] | undefined;

  constructor(rows: Rows<ApprovalEvent>) {
    this.#rows = rows;
  }

  of(toolCallId: string): readonly ApprovalEvent[] {
    return this.#read().byCall.get(toolCallId) ?? [];
  }

  round(toolCallId: string): ApprovalRound {
    return roundOf(this.of(toolCallId));
  }

  pending(): readonly ApprovalEvent[] {
    return (this.#open ??= this.#read().events.filter((event) => {
      if (event.action !== "requested") return false;
      const { status, request } = this.round(event.toolCallId);
      return status === "pending" && request === event;
    }));
  }

  follow(listener: () => void): () => void {
    return this.#rows.subscribe(() => {
      this.refresh();
      listener();
    });
  }

  refresh(): void {
    this.#known = undefined;
    this.#open = undefined;
  }

  #read(): Read {
    if (this.#known !== undefined) return this.#known;
    const events = inOrder(this.#rows.all());
    return (this.#known = { events, byCall: Map.groupBy(events, (event) => event.toolCallId) });
  }
}

/** The trail of events on a log: kept current by what has changed, as long as somebody follows it. */
class LogTrail implements ApprovalTrail {
  readonly #events: RowCollection<ApprovalEvent>;
  #followers = 0;
  #byCall: RowIndex<ApprovalEvent> | undefined;
  /** The undecided request of each call that has one. */
  readonly #open = new Map<string, ApprovalEvent>();
  /** The same in their order; undefined: they have changed. */
  #waiting: readonly ApprovalEvent[] | undefined;

  constructor(events: RowCollection<ApprovalEvent>) {
    this.#events = events;
  }

  of(toolCallId: string): readonly ApprovalEvent[] {
    return this.#read(() => this.#byCall?.rows(toolCallId) ?? []);
  }

  round(toolCallId: string): ApprovalRound {
    return roundOf(this.of(toolCallId));
  }

  pending(): readonly ApprovalEvent[] {
    return this.#read(() => (this.#waiting ??= this.#inPlace([...this.#open.values()])));
  }

  follow(listener: () => void): () => void {
    // First, so that who is told can read it here. Each is told by the log: one that throws stops no other.
    if (this.#followers++ === 0) this.#start();
    const unsubscribe = rowsOf(this.#events).subscribe(listener);
    let ended = false;
    return () => {
      unsubscribe();
      if (!ended && --this.#followers === 0) this.#stop();
      ended = true;
    };
  }

  /** A write is applied here before its writer hears of it. */
  refresh(): void {}

  /** Without followers, what is read is true for this moment only. */
  #read<T>(look: () => T): T {
    if (this.#byCall !== undefined) return look();
    this.#start();
    try {
      return look();
    } finally {
      this.#stop();
    }
  }

  #start(): void {
    const judge = (calls: Iterable<string>) => this.#judge(calls);
    this.#byCall = indexRows(this.#events, (event) => event.toolCallId, judge);
    judge(this.#byCall?.names() ?? []);
  }

  #stop(): void {
    this.#byCall?.stop();
    this.#byCall = undefined;
    this.#open.clear();
    this.#waiting = undefined;
  }

  #judge(calls: Iterable<string>): void {
    for (const call of calls) {
      const { status, request } = this.round(call);
      if (status === "pending" && request !== undefined) this.#open.set(call, request);
      else this.#open.delete(call);
      this.#waiting = undefined;
    }
  }

  /** By the places of their rows, which not all of them show. */
  #inPlace(requests: readonly ApprovalEvent[]): ApprovalEvent[] {
    const table = logUtilsOf(this.#events)?.confirmed;
    const place = ({ id }: ApprovalEvent) => table?.get(id)?.order ?? 0;
    return requests.toSorted((a, b) => place(a) - place(b));
  }
}
