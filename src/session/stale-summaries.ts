import { type CompactionRow, compactionPlaces, dropCompaction, readCompactionAt } from "../store/compaction.ts";
import { standsAbove } from "../store/message.ts";
import type { SessionStore } from "./session-store.ts";

/** Why a summary that was in effect is so no more. */
export type StaleReason = "changed" | "deleted";

const WHY: Record<StaleReason, string> = {
  changed: "A message that it stood for was changed.",
  deleted: "A message that it stood for was deleted.",
};

/**
 * Takes the summaries back that stand for a message which is about to be, or was, changed or deleted: the words that it had
 * are in them. Their texts are deleted, in every session that has them; what the model reads instead are the messages, and
 * a new summary is made before the next request if these do not fit. In the caller's transaction, while the message is
 * in its place.
 */
export function dropSummaries(store: SessionStore, seq: number, messageId: string, reason: StaleReason): void {
  for (const place of compactionPlaces(store)) {
    if (!standsAbove(store, seq, place.at)) continue;
    const row = readCompactionAt(store, place.seq);
    if (row === undefined || row.kind === "prune" || !covers(row, seq)) continue;
    dropCompaction(store, row.seq, WHY[reason]);
    if (row.status !== "done") continue;
    store.emit("chat:summary:dropped", { session: row.session, compactionId: row.id, messageId, reason });
  }
}

/** Of what it stands at it may cover a part, or nothing. */
function covers({ at, parts }: CompactionRow, seq: number): boolean {
  return seq !== at || parts !== 0;
}
