import type { UIMessage } from "../message/types.ts";
import type { Transcript } from "../session/transcript.ts";
import type { TurnRow } from "../store/turn.ts";

/** Makes the messages of turns that were waiting part of the newest one, so that the model reads one message. */
export function mergeWaiting(transcript: Transcript, waiting: readonly TurnRow[], added: readonly UIMessage[]): void {
  const newest = added.at(-1);
  if (newest === undefined) return;
  const ids = waiting.flatMap((turn) => JSON.parse(turn.messageIds) as string[]);
  const earlier = new Set([...ids, ...added.slice(0, -1).map((message) => message.id)]);
  earlier.delete(newest.id);
  const parts: UIMessage["parts"] = [];
  for (const id of earlier) {
    const message = transcript.get(id);
    if (message === undefined) continue;
    parts.push(...message.parts);
    transcript.remove(id);
  }
  if (parts.length > 0) transcript.put({ ...newest, parts: [...parts, ...newest.parts] });
}
