import { repairMessage } from "../../message/repair.ts";
import type { Desk } from "./desk.ts";
import { isOfOthers, repairsOf } from "./repair-last.ts";

/**
 * Takes messages out of a conversation because something else is said instead: they stay as a branch of their own. What
 * the newest answer among them waits for is waited for no longer; its calls have an end, as they have when somebody
 * simply goes on. In the caller's transaction.
 */
export function setAside(desk: Desk, session: string, ids: readonly string[]): void {
  if (ids.length === 0) return;
  const transcript = desk.transcripts.of(session);
  const answerId = ids.findLast((id) => transcript.role(id) === "assistant");
  const answer = answerId === undefined ? undefined : transcript.get(answerId);
  // A fork has the same answer. What goes on for the session that it comes of is not the fork's to stop.
  if (answer !== undefined && !isOfOthers(desk, session, answer.id)) {
    const repaired = repairMessage(answer, repairsOf(desk));
    if (repaired !== answer) transcript.put(repaired);
    desk.hooks.removed?.(answer.id);
    desk.hooks.background?.drop((call) => call.messageId === answer.id);
  }
  transcript.setAside(new Set(ids));
}
