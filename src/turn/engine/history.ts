import type { Sql } from "../../port.ts";
import type { Transcript } from "../../session/transcript.ts";
import { begunTurns, messageIdsOf, type TurnRow, turnsBehind } from "../../store/turn.ts";

/*
 * Where messages stand
 *
 * A message is stored when accepted, so that every client sees it. Until its turn starts it stays behind the answer under way,
 * whose model does not see it: each turn reads a conversation that ends with what it is to answer. What code submits is stored
 * elsewhere until then.
 */

/** Ids of messages that wait for their own turn while `current` runs. @param unanswered those behind the last answer */
export function waitingMessages(db: Sql, current: TurnRow, unanswered: () => readonly string[]): Set<string> {
  const ids = new Set<string>();
  for (const turn of turnsBehind(db, current)) {
    // What is regenerated, or was edited, has its place already.
    if (turn.trigger !== "regenerate") for (const id of messageIdsOf(turn)) ids.add(id);
  }
  if (ids.size === 0) return ids;
  // A request names every message before it that had no answer when it was sent. Those of turns that have begun had
  // their turn, whatever became of it; and what stands before the turn's own message is what it was sent into.
  for (const turn of [current, ...begunTurns(db, current.session)]) for (const id of messageIdsOf(turn)) ids.delete(id);
  const list = unanswered();
  const own = new Set(messageIdsOf(current));
  return new Set(list.slice(list.findLastIndex((id) => own.has(id)) + 1).filter((id) => ids.has(id)));
}

/** Puts an answer that was just named in front of everything that waits. */
export function passWaiting(db: Sql, transcript: Transcript, current: TurnRow, answerId: string): void {
  transcript.moveToEnd(waitingMessages(db, current, () => transcript.unanswered(answerId)));
}
