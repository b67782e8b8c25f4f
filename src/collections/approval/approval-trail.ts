import type { ApprovalEvent } from "../contract.ts";
import type { RowCollection, Rows } from "../rows.ts";
import { rowsOf } from "../rows.ts";
import { inOrder, roundOf } from "./approval-status.ts";
import type { ApprovalRound } from "./approval-status.ts";
import { LogTrail } from "./log-trail.ts";

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
  private readonly rows: Rows<ApprovalEvent>;
  private known: Read | undefined;
  private open: readonly ApprovalEvent[] | undefined;

  constructor(rows: Rows<ApprovalEvent>) {
    this.rows = rows;
  }

  of(toolCallId: string): readonly ApprovalEvent[] {
    return this.read().byCall.get(toolCallId) ?? [];
  }

  round(toolCallId: string): ApprovalRound {
    return roundOf(this.of(toolCallId));
  }

  pending(): readonly ApprovalEvent[] {
    return (this.open ??= this.read().events.filter((event) => {
      if (event.action !== "requested") return false;
      const { status, request } = this.round(event.toolCallId);
      return status === "pending" && request === event;
    }));
  }

  follow(listener: () => void): () => void {
    return this.rows.subscribe(() => {
      this.refresh();
      listener();
    });
  }

  refresh(): void {
    this.known = undefined;
    this.open = undefined;
  }

  private read(): Read {
    if (this.known !== undefined) return this.known;
    const events = inOrder(this.rows.all());
    return (this.known = { events, byCall: Map.groupBy(events, (event) => event.toolCallId) });
  }
}
