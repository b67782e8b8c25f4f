import { isRecord } from "../base/json.ts";
import type { UIMessage } from "./types.ts";

/** The field of a message's metadata that is the server's. What clients send there is not taken. */
const RESERVED = "perdure";

/** The answer that took this message in. For readers it stays where it was; for the model it is a part of that answer. */
export function steeredInto(message: UIMessage): string | undefined {
  const own = isRecord(message.metadata) ? message.metadata[RESERVED] : undefined;
  return isRecord(own) && typeof own.steeredInto === "string" ? own.steeredInto : undefined;
}

/** Whether an answer took this message in. */
export function isSteered(message: UIMessage): boolean {
  return steeredInto(message) !== undefined;
}

/** The message with the note that an answer took it in. Its other metadata stay. */
export function markSteered(message: UIMessage, answerId: string): UIMessage {
  const metadata = isRecord(message.metadata) ? message.metadata : {};
  const own = isRecord(metadata[RESERVED]) ? metadata[RESERVED] : {};
  return { ...message, metadata: { ...metadata, [RESERVED]: { ...own, steeredInto: answerId } } };
}

/** A message of a client without what only the server may say about it. The same object when there is nothing. */
export function withoutReserved(message: UIMessage): UIMessage {
  if (!isRecord(message.metadata) || !Object.hasOwn(message.metadata, RESERVED)) return message;
  const { [RESERVED]: _own, ...metadata } = message.metadata;
  const { metadata: _metadata, ...rest } = message;
  return Object.keys(metadata).length === 0 ? rest : { ...rest, metadata };
}

/** The conversation for the model, without messages that answers took in. If such an answer is gone, they count again. */
export function withoutSteered(messages: readonly UIMessage[]): UIMessage[] {
  const taken = new Set<string>();
  for (const { role, parts } of messages) {
    if (role !== "assistant") continue;
    for (const part of parts) if (part.type === "steering-message") taken.add(part.id);
  }
  return messages.filter(({ id, role }) => role !== "user" || !taken.has(id));
}
