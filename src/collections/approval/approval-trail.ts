import type { ApprovalEvent } from "../contract.ts";
import type { Rows } from "../rows.ts";
import { inOrder, roundOf } from "./approval-status.ts";
import type { ApprovalRound } from "./approval-status.ts";

const NO_EVENTS: readonly ApprovalEvent[] = [];

/** All events in their order, and the same by the call that they are about. */
interface ReadTrail {
  readonly events: readonly ApprovalEvent[];
  readonly byCall: ReadonlyMap<string, readonly ApprovalEvent[]>;
}

/** The events as they are asked for. Read again only when something has changed. */
export class ApprovalTrail {
  private readonly rows: Rows<ApprovalEvent>;
  private known: ReadTrail | undefined;
  private open: readonly ApprovalEvent[] | undefined;

  constructor(rows: Rows<ApprovalEvent>) {
    this.rows = rows;
  }

  /** The rows have changed. */
  changed(): void {
    this.known = undefined;
    this.open = undefined;
  }

  of(toolCallId: string): readonly ApprovalEvent[] {
    return this.read().byCall.get(toolCallId) ?? NO_EVENTS;
  }

  round(toolCallId: string): ApprovalRound {
    return roundOf(this.of(toolCallId));
  }

  /** The requests that nobody has decided, the oldest first. */
  pending(): readonly ApprovalEvent[] {
    return (this.open ??= this.read().events.filter((event) => {
      if (event.action !== "requested") return false;
      const { status, request } = this.round(event.toolCallId);
      return status === "pending" && request === event;
    }));
  }

  private read(): ReadTrail {
    if (this.known !== undefined) return this.known;
    const rows = this.rows.all();
    // Rows of a log come in its order, whether or not a field of them shows it.
    const events = this.rows.log === undefined ? inOrder(rows) : rows;
    const byCall = new Map<string, ApprovalEvent[]>();
    for (const event of events) {
      const own = byCall.get(event.toolCallId);
      if (own === undefined) byCall.set(event.toolCallId, [event]);
      else own.push(event);
    }
    return (this.known = { events, byCall });
  }
}
