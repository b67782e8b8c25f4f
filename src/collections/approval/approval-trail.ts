import type { ApprovalEvent } from "../contract.ts";
import type { Rows } from "../rows.ts";
import { inOrder, roundOf } from "./approval-status.ts";
import type { ApprovalRound } from "./approval-status.ts";

const NO_EVENTS: readonly ApprovalEvent[] = [];

/** The events by the call that they are about, in their order. Read again only when something has changed. */
export class ApprovalTrail {
  private readonly rows: Rows<ApprovalEvent>;
  private byCall: Map<string, ApprovalEvent[]> | undefined;
  private open: ApprovalEvent[] | undefined;

  constructor(rows: Rows<ApprovalEvent>) {
    this.rows = rows;
  }

  /** The rows have changed. */
  changed(): void {
    this.byCall = undefined;
    this.open = undefined;
  }

  of(toolCallId: string): readonly ApprovalEvent[] {
    return this.calls().get(toolCallId) ?? NO_EVENTS;
  }

  round(toolCallId: string): ApprovalRound {
    return roundOf(this.of(toolCallId));
  }

  /** The requests that nobody has decided, the oldest first. */
  pending(): readonly ApprovalEvent[] {
    if (this.open !== undefined) return this.open;
    const open: ApprovalEvent[] = [];
    for (const events of this.calls().values()) {
      const { status, request } = roundOf(events);
      if (status === "pending" && request !== undefined) open.push(request);
    }
    return (this.open = this.ordered(open));
  }

  private calls(): Map<string, ApprovalEvent[]> {
    if (this.byCall !== undefined) return this.byCall;
    const calls = new Map<string, ApprovalEvent[]>();
    for (const event of this.ordered(this.rows.all())) {
      const events = calls.get(event.toolCallId);
      if (events === undefined) calls.set(event.toolCallId, [event]);
      else events.push(event);
    }
    return (this.byCall = calls);
  }

  /** Rows of a log come in its order, whether or not a field of them shows it. */
  private ordered(events: ApprovalEvent[]): ApprovalEvent[] {
    return this.rows.log === undefined || events.every(({ seq }) => seq !== undefined) ? inOrder(events) : events;
  }
}
