import type { ApprovalEvent } from "../contract.ts";
import { logUtilsOf } from "../log/collection-options.ts";
import { indexRows } from "../row-index.ts";
import type { RowIndex } from "../row-index.ts";
import { rowsOf } from "../rows.ts";
import type { RowCollection } from "../rows.ts";
import { roundOf } from "./approval-status.ts";
import type { ApprovalRound } from "./approval-status.ts";
import type { ApprovalTrail } from "./approval-trail.ts";

/** The trail of events on a log: kept current by what has changed, as long as somebody follows it. */
export class LogTrail implements ApprovalTrail {
  private readonly events: RowCollection<ApprovalEvent>;
  private followers = 0;
  private byCall: RowIndex<ApprovalEvent> | undefined;
  /** The undecided request of each call that has one. */
  private readonly open = new Map<string, ApprovalEvent>();
  /** The same in their order; undefined: they have changed. */
  private waiting: readonly ApprovalEvent[] | undefined;

  constructor(events: RowCollection<ApprovalEvent>) {
    this.events = events;
  }

  of(toolCallId: string): readonly ApprovalEvent[] {
    return this.read(() => this.byCall?.rows(toolCallId) ?? []);
  }

  round(toolCallId: string): ApprovalRound {
    return roundOf(this.of(toolCallId));
  }

  pending(): readonly ApprovalEvent[] {
    return this.read(() => (this.waiting ??= this.inPlace([...this.open.values()])));
  }

  follow(listener: () => void): () => void {
    // First, so that who is told can read it here. Each is told by the log: one that throws stops no other.
    if (this.followers++ === 0) this.start();
    const unsubscribe = rowsOf(this.events).subscribe(listener);
    let ended = false;
    return () => {
      unsubscribe();
      if (!ended && --this.followers === 0) this.stop();
      ended = true;
    };
  }

  /** A write is applied here before its writer hears of it. */
  refresh(): void {}

  /** Without followers, what is read is true for this moment only. */
  private read<T>(look: () => T): T {
    if (this.byCall !== undefined) return look();
    this.start();
    try {
      return look();
    } finally {
      this.stop();
    }
  }

  private start(): void {
    const judge = (calls: Iterable<string>) => this.judge(calls);
    this.byCall = indexRows(this.events, (event) => event.toolCallId, judge);
    judge(this.byCall?.names() ?? []);
  }

  private stop(): void {
    this.byCall?.stop();
    this.byCall = undefined;
    this.open.clear();
    this.waiting = undefined;
  }

  private judge(calls: Iterable<string>): void {
    for (const call of calls) {
      const { status, request } = this.round(call);
      if (status === "pending" && request !== undefined) this.open.set(call, request);
      else this.open.delete(call);
      this.waiting = undefined;
    }
  }

  /** By the places of their rows, which not all of them show. */
  private inPlace(requests: readonly ApprovalEvent[]): ApprovalEvent[] {
    const table = logUtilsOf(this.events)?.confirmed;
    const place = ({ id }: ApprovalEvent) => table?.get(id)?.order ?? 0;
    return requests.toSorted((a, b) => place(a) - place(b));
  }
}
