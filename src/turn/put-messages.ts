import { mergeMessages } from "../message/merge.ts";
import type { UIMessage } from "../message/types.ts";
import type { Transcript } from "../session/transcript.ts";

/** Merges messages of server code into the conversation. @returns those that were there before and have changed. */
export function putMessages(transcript: Transcript, messages: readonly UIMessage[]): UIMessage[] {
  // Only an answer under a new id is looked for by its content; the others cost nothing in a long conversation.
  const byContent = messages.some(({ id, role }) => role === "assistant" && transcript.role(id) !== "assistant");
  const stored = byContent ? transcript.list() : messages.flatMap(({ id }) => transcript.get(id) ?? []);
  const { add, update } = mergeMessages(stored, messages);
  const changed = update.map((message) => transcript.put(message));
  for (const message of add) transcript.put(message);
  return changed;
}
