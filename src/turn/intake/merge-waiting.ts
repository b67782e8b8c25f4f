import type { UIMessage } from "../../message/types.ts";
import type { Transcript } from "../../session/transcript.ts";
import type { TurnRow } from "../../store/turn.ts";
import { messageIdsOf } from "../../store/turn.ts";

/**
 * Makes the messages of turns that were waiting part of the newest one, so that the model reads one message. What was
 * answered, or is for one of the `others` to answer, is not touched, also if a client counts it among what it asks; nor
 * is what somebody else wrote: nobody is given another one's words. @returns whether there were any.
 */
export function mergeWaiting(
  transcript: Transcript,
  waiting: readonly TurnRow[],
  added: readonly UIMessage[],
  others: readonly TurnRow[],
): boolean {
  const newest = added.at(-1);
  if (newest === undefined) return false;
  const asked = new Set([...waiting.flatMap(messageIdsOf), ...added.map((message) => message.id)]);
  for (const id of others.flatMap(messageIdsOf)) asked.delete(id);
  const open = transcript.unanswered().flatMap((id) => transcript.get(id) ?? []);
  const writer = transcript.identityOf(newest.id);
  const earlier = open.filter(({ id }) => asked.has(id) && id !== newest.id && transcript.identityOf(id) === writer);
  if (earlier.length === 0) return false;
  for (const { id } of earlier) transcript.remove(id);
  transcript.put({ ...newest, parts: [...earlier.flatMap((message) => message.parts), ...newest.parts] });
  return true;
}
