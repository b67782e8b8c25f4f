import { sameJson } from "../base/json.ts";
import type { Role, UIMessage } from "./types.ts";

/** What reconciling asks of the stored conversation. All of it is fast and must not throw. */
export interface StoredMessages {
  /** The role of a stored message; `undefined` when there is none with that id. */
  role(id: string): Role | undefined;
  /** Its content. Asked only for the client's last message. */
  get(id: string): UIMessage | undefined;
  /** The ids that come after `id` in the conversation as it is shown, oldest first. */
  idsAfter(id: string): readonly string[];
}

interface ReconcileOptions {
  /** What the client did. Anything but `regenerate-message` is a submit. */
  readonly trigger?: string;
  /** The answer that is being written now. What a client has of it is part of it at best. */
  readonly inFlightId?: string;
  /** Whether a message that is not stored once was. A client may still show it; it comes back only as the last message. */
  readonly wasStored?: (id: string) => boolean;
  /** What storing makes of a message, so that a stored one that was cut is not taken for an edit. */
  readonly asStored?: (message: UIMessage) => UIMessage;
}

/** What a client's transcript changes in the stored one. */
export interface Reconciled {
  /** New user messages, in order. */
  readonly add: UIMessage[];
  /** The last message of the client, if it is a known one of the user with other parts than before. */
  readonly update: UIMessage[];
  /** Ids that the client cut off by a regenerate or an edit, oldest first. A store with branches may ignore it. */
  readonly remove: string[];
  /** The last stored message that the client still shows: what it adds, or asks for, comes after this one. */
  readonly last: string | undefined;
}

/**
 * Reads a client's whole transcript as the little that it may change: new user messages, edits of them, and where the
 * conversation is cut. A client's assistant and system messages are never taken: the server's copy is right, also of an answer
 * under way. Nothing before the client's last message is removed, because it may show only the end of a conversation; nothing
 * before a stored message is added, because it may show what was trimmed or merged.
 *
 * Only the last message is compared with what is stored: public clients edit no other, and the cost does not grow with length.
 */
export function reconcile(
  stored: StoredMessages,
  incoming: readonly UIMessage[],
  options: ReconcileOptions = {},
): Reconciled {
  const add: UIMessage[] = [];
  const update: UIMessage[] = [];
  const seen = new Set<string>();
  const final = incoming.at(-1);
  const isKnown = ({ id }: UIMessage) => id === options.inFlightId || stored.role(id) !== undefined;
  // What stands before a message that is stored was stored once too, and has gone since: it is not new.
  const newFrom = incoming.findLastIndex(isKnown) + 1;
  let last: string | undefined;
  for (const [at, message] of incoming.entries()) {
    if (seen.has(message.id)) continue;
    seen.add(message.id);
    if (message.id === options.inFlightId) continue;
    const role = stored.role(message.id);
    if (role === undefined) {
      const isNew = at >= newFrom && (message === final || options.wasStored?.(message.id) !== true);
      if (message.role === "user" && isNew) add.push(message);
      continue;
    }
    last = message.id;
    const isCompared = message === final && role === "user" && message.role === "user";
    if (isCompared && isChanged(stored, message, options)) update.push(message);
  }
  const cuts = add.length === 0 && (update.length > 0 || options.trigger === "regenerate-message");
  const after = cuts && last !== undefined ? stored.idsAfter(last) : [];
  return { add, update, remove: after.filter((id) => !seen.has(id) && id !== options.inFlightId), last };
}

function isChanged(stored: StoredMessages, message: UIMessage, options: ReconcileOptions): boolean {
  const before = stored.get(message.id);
  if (before === undefined || sameJson(before.parts, message.parts)) return false;
  return options.asStored === undefined || !sameJson(before.parts, options.asStored(message).parts);
}
