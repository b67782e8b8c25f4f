import { PerdureError } from "../base/error.ts";
import { newId } from "../base/id.ts";
import { isRecord } from "../base/json.ts";
import type { UIMessage } from "./types.ts";
import { messageFault, sizeFault } from "./validate.ts";

/** A message that gets its id when it is taken in, unless it has one. */
export type NewMessage = Omit<UIMessage, "id"> & { readonly id?: string };

/** What server code may say: a user's text, a message, or several. */
export type MessageInput = string | NewMessage | readonly NewMessage[];

/** What a user says in one text. */
export function userText(text: string): UIMessage {
  return { id: newId("msg"), role: "user", parts: [{ type: "text", text }] };
}

/** The messages that server code means, each with an id. @throws PerdureError `bad_input`, `too_large` */
export function toMessages(input: MessageInput): UIMessage[] {
  if (typeof input === "string") return [checked(userText(input), "The message")];
  const list: readonly unknown[] = Array.isArray(input) ? input : [input];
  return list.map((value, i) => {
    const message = isRecord(value) && value.id === undefined ? { ...value, id: newId("msg") } : value;
    return checked(message, `messages[${i}]`);
  });
}

function checked(value: unknown, what: string): UIMessage {
  const fault = messageFault(value);
  if (fault !== undefined) throw new PerdureError("bad_input", `${what} is not a message: ${fault}.`);
  const message = value as UIMessage;
  const size = message.role === "user" ? sizeFault(message) : undefined;
  if (size !== undefined) throw new PerdureError("too_large", `${what}: ${size}.`);
  return message;
}
