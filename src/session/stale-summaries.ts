import { isToldIn } from "../message/told-line.ts";
import type { UIMessage } from "../message/types.ts";
import { type CompactionRow, compactionPlaces, dropCompaction, readCompactionAt } from "../store/compaction.ts";
import { standsAbove } from "../store/message.ts";
import type { SessionStore } from "../store/session-store.ts";

/** Why a summary that was in effect is so no more. */
type StaleReason = "changed" | "deleted";

const WHY: Record<StaleReason, string> = {
  changed: "A message that it stood for, or told of, was changed.",
  deleted: "A message that it stood for, or told of, was deleted.",
};

/** A message that is about to be, or was, changed or deleted. */
interface StaleMessage {
  readonly seq: number;
  readonly id: string;
  readonly reason: StaleReason;
  /** What it said, as far as that can be read. */
  readonly before: UIMessage | undefined;
  /** What it says since. */
  readonly now?: UIMessage;
}

/**
 * Takes back summaries that stand for a message about to be, or just, changed or deleted: they have its words. So do those made
 * while it waited, or while its call went on. Texts are deleted in every session; the model reads the messages, and a new summary
 * is made if they do not fit. In the caller's transaction, while the message is in its place.
 */
export function dropSummaries(store: SessionStore, message: StaleMessage): void {
  const { seq, id, reason } = message;
  for (const place of compactionPlaces(store)) {
    const isAbove = standsAbove(store, seq, place.at);
    if (!isAbove && !standsAbove(store, place.at, seq)) continue;
    const row = readCompactionAt(store, place.seq);
    if (row === undefined || row.kind === "prune" || !((isAbove && covers(row, seq)) || tells(row, message))) continue;
    dropCompaction(store, row.seq, WHY[reason]);
    if (row.status !== "done") continue;
    store.emit("chat:summary:dropped", { session: row.session, compactionId: row.id, messageId: id, reason });
  }
}

/** Whether what code wrote below the summary has words of a message that came later. */
function tells({ carried }: CompactionRow, { before, now }: StaleMessage): boolean {
  return carried !== null && before !== undefined && isToldIn(carried, before, now);
}

/** Of what it stands at it may cover a part, or nothing. */
function covers({ at, parts }: CompactionRow, seq: number): boolean {
  return seq !== at || parts !== 0;
}
