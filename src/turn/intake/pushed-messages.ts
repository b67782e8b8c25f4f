import { type Identity, readIdentity } from "../../base/identity.ts";
import { isRecord, sameJson } from "../../base/json.ts";
import { withoutReserved } from "../../message/steered.ts";
import type { UIMessage } from "../../message/types.ts";
import { parseUserMessage } from "../../message/validate.ts";
import { isSaidIn } from "../../session/siblings.ts";
import type { Conversations } from "../engine/conversations.ts";

/** So many messages of a transcript that a client pushes are looked at in one go. */
export const LOOKED_AT_ONCE = 500;

/**
 * Of a transcript that a client pushes only what is new of its own messages is taken, and none of another session. Where it
 * is known who wrote a message, nobody else may give it other words.
 */
export function newUserMessages(
  chat: Conversations,
  session: string,
  list: readonly unknown[],
  identity: Identity | undefined,
  refused: (reason: string) => void,
): UIMessage[] {
  const messages: UIMessage[] = [];
  const transcript = chat.transcripts.of(session);
  for (const value of list) {
    if (!isRecord(value) || value.role !== "user" || typeof value.id !== "string") continue;
    const role = transcript.role(value.id);
    const isOwn = role === undefined || (role === "user" && isSaidIn(chat.host, session, value.id));
    if (!isOwn || (role !== undefined && sameJson(transcript.get(value.id), value))) continue;
    const author = role === undefined ? undefined : readIdentity(transcript.identityOf(value.id));
    if (author !== undefined && author.id !== identity?.id) {
      const isSame = sameJson(transcript.get(value.id)?.parts, value.parts);
      if (!isSame) refused("a message that was pushed: somebody else has written it");
      continue;
    }
    const parsed = parseUserMessage(value);
    if ("message" in parsed) messages.push(withoutReserved(parsed.message));
    else refused(`a message that was pushed: ${parsed.reason}`);
  }
  return messages;
}

/** Looks through a long transcript without holding up everybody else. */
export async function inPieces(
  { host }: Conversations,
  list: readonly unknown[],
  look: (piece: readonly unknown[]) => UIMessage[],
): Promise<UIMessage[]> {
  const found: UIMessage[] = [];
  for (let at = 0; at < list.length; at += LOOKED_AT_ONCE) {
    for (const message of look(list.slice(at, at + LOOKED_AT_ONCE))) found.push(message);
    await host.breathe();
  }
  return found;
}
