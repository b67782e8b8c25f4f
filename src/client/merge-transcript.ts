import type { UIMessage } from "../message/types.ts";
import type { LiveTurn } from "./live-turn.ts";
import { idBefore, keepObjects, putMessage } from "./message-list.ts";

/**
 * The conversation as the server has it, with what it cannot know yet: messages that are on their way to it, and what
 * came of answers since. The turns note what the server had of theirs.
 * @param old what is shown now.
 */
export function mergeTranscript(
  old: readonly UIMessage[],
  incoming: readonly UIMessage[],
  turns: Iterable<LiveTurn>,
  unsent: ReadonlySet<string> = new Set(),
): UIMessage[] {
  const ids = new Set(incoming.map(({ id }) => id));
  let next = keepObjects(old, incoming);
  for (const message of old) {
    if (unsent.has(message.id)) next = putMessage(next, message, idBefore(old, message.id));
  }
  for (const turn of turns) {
    const asked = old.find(({ id }) => id === turn.asked?.messageId);
    turn.missing = asked !== undefined && !ids.has(asked.id);
    turn.accepted ||= asked !== undefined && !turn.missing;
    // Not there yet, or never: its end will tell.
    if (asked !== undefined && turn.missing && !turn.accepted && !turn.hidden) next = putMessage(next, asked);
    const { message } = turn;
    if (message === undefined) continue;
    turn.snapshot = incoming.find(({ id }) => id === message.id);
    turn.absent = turn.stale && turn.snapshot === undefined;
    // Of a turn that was cut off the server knows more.
    if (!turn.stale) next = putMessage(next, message, idBefore(old, message.id));
  }
  return next;
}
