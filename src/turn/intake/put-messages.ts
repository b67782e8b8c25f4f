import { mergeMessages } from "../../message/merge.ts";
import type { UIMessage } from "../../message/types.ts";
import type { Transcript } from "../../session/transcript.ts";

/** How far beyond their number messages are compared by content. */
const COMPARED = 200;

/**
 * Merges messages of server code into the conversation. @returns those that were there before and have changed.
 * @param identity who wrote those of the user, as it is stored; undefined: nobody knows, or it stays as it was.
 */
export function putMessages(
  transcript: Transcript,
  messages: readonly UIMessage[],
  identity?: string | null,
): UIMessage[] {
  // Only an answer under a new id is looked for by its content; the others cost nothing in a long conversation.
  const byContent = messages.some(({ id, role }) => role === "assistant" && transcript.role(id) !== "assistant");
  const stored = byContent ? recent(transcript, messages) : messages.flatMap(({ id }) => transcript.get(id) ?? []);
  const { add, update } = mergeMessages(stored, messages);
  const whose = ({ role }: UIMessage) => (role === "user" ? identity : undefined);
  const changed = update.map((message) => transcript.rewrite(message, whose(message)));
  for (const message of add) transcript.put(message, whose(message));
  return changed;
}

/** The messages that the given ones can be about: as many as there are, and some. */
function recent(transcript: Transcript, messages: readonly UIMessage[]): UIMessage[] {
  const list: UIMessage[] = [];
  for (const { message } of transcript.up()) {
    if (list.length >= messages.length + COMPARED) break;
    list.push(message);
  }
  list.reverse();
  const ids = new Set(list.map(({ id }) => id));
  return [...messages.flatMap(({ id }) => (ids.has(id) ? [] : (transcript.get(id) ?? []))), ...list];
}
