import type { Sql } from "../port.ts";
import {
  compactionPlaces,
  type CompactionRow,
  pinsOf,
  readCompactionAt,
  setCompactionPins,
} from "../store/compaction.ts";
import type { DamageTeller } from "../store/damaged.ts";
import { type MessageRow, setPinned, standsAbove } from "../store/message.ts";

/** Whether a message is shown to the model whatever is compacted. */
export function isPinned({ pinned }: Pick<MessageRow, "pinned">): boolean {
  return pinned === 1;
}

/**
 * Pins or unpins a message, in the caller's transaction. Summaries that cover it already are told: the model reads it
 * again, or no longer, with its next request.
 */
export function pinMessage(db: Sql & DamageTeller, { seq, pinned: before }: MessageRow, pinned: boolean): void {
  if ((before === 1) === pinned) return;
  setPinned(db, seq, pinned);
  for (const place of compactionPlaces(db)) {
    const pins = pinsOf(db, place)?.filter((one) => one !== seq);
    if (pins === undefined) continue;
    if (pinned && isCovered(db, seq, place)) pins.push(seq);
    setCompactionPins(
      db,
      place.seq,
      pins.toSorted((a, b) => a - b),
    );
  }
}

/** Of a message that was split the rest is shown anyway. */
function isCovered(db: Sql, seq: number, place: Pick<CompactionRow, "seq" | "at">): boolean {
  if (seq === place.at) return readCompactionAt(db, place.seq)?.parts === null;
  return standsAbove(db, seq, place.at);
}
