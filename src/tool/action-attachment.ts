import { PerdureError } from "../base/error.ts";
import { isRecord } from "../base/json.ts";
import type { UIMessage, UIMessageChunk } from "../message/types.ts";
import { toPlainJson } from "./plain-json.ts";

/** The most attachments of one turn. */
export const MAX_ATTACHMENTS = 32;
/** One attachment, as JSON. Larger things are stored elsewhere and named. */
const MAX_ATTACHMENT_CHARS = 100_000;

/** What is delivered beside an answer: `email_draft`, `card`, `voice_note`, or whatever the app calls it. JSON. */
export interface ReplyAttachment {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The type of the part that holds one. Models do not read such parts. */
const ATTACHMENT_PART = "data-reply-attachment";

/** A copy of an attachment as plain JSON. @throws PerdureError `bad_input`, `limit` */
export function checkAttachment(attachment: unknown): ReplyAttachment {
  const plain = toPlainJson(attachment, "The attachment");
  if (!isRecord(plain) || typeof plain.type !== "string" || plain.type === "") {
    throw new PerdureError("bad_input", 'An attachment is an object with a "type", such as { type: "card", … }.');
  }
  if (JSON.stringify(plain).length > MAX_ATTACHMENT_CHARS) {
    throw new PerdureError(
      "limit",
      `An attachment may have at most ${MAX_ATTACHMENT_CHARS} characters as JSON. Store it as a file and attach its name.`,
    );
  }
  return plain as unknown as ReplyAttachment;
}

/** The chunk that adds an attachment to an answer. The same id adds it once. */
export function attachmentChunk(id: string, attachment: ReplyAttachment): UIMessageChunk {
  return { type: ATTACHMENT_PART, id, data: attachment };
}

/** What was attached to an answer, in order. */
export function attachmentsOf(message: Pick<UIMessage, "parts">): ReplyAttachment[] {
  return message.parts.flatMap((part) => {
    if (part.type !== ATTACHMENT_PART || !("data" in part) || !isRecord(part.data)) return [];
    // Written by `attachmentChunk` alone, which takes what was checked.
    return [part.data as unknown as ReplyAttachment];
  });
}
