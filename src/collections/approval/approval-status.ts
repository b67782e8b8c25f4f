import type { ApprovalEvent } from "../contract.ts";

/** Where the approval of a tool call is. `none`: nobody has asked, and nobody has decided. */
export type ApprovalStatus = "none" | "pending" | "approved" | "denied" | "expired";

/** What one call's events come to. */
export interface ApprovalRound {
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
export function roundOf(ordered: readonly ApprovalEvent[]): ApprovalRound {
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
export function inOrder(events: readonly ApprovalEvent[]): ApprovalEvent[] {
  const placed = events.every(({ seq }) => seq !== undefined);
  return events.toSorted((a, b) => {
    if (placed) return (a.seq ?? 0) - (b.seq ?? 0);
    return compare(a.timestamp, b.timestamp) || compare(a.id, b.id);
  });
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
