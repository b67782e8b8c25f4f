import { isRecord, utf8Length } from "../base/json.ts";
import { toReference } from "./media-ref.ts";
import { isToolType, type Role, type UIMessage } from "./types.ts";

/** Ids come from clients and models; a longer one is a mistake or an attack. */
export const MAX_ID_LENGTH = 512;
/**
 * The most JSON bytes of a user's message. Stored whole or not at all: only its author knows what may be left out. A client sends
 * its whole transcript in one frame, so that there is no more room.
 */
const MAX_USER_MESSAGE_BYTES = 8_000_000;
/** The most parts of a user's message. People send a few; every part is looked at whenever the message is. */
const MAX_MESSAGE_PARTS = 1_000;
/** The most values in a user's message, lists and objects included. */
const MAX_MESSAGE_VALUES = 20_000;
/** Deeper JSON than this cannot be walked safely, and no client sends it. */
export const MAX_DEPTH = 100;

const roles: ReadonlySet<unknown> = new Set<Role>(["user", "assistant", "system"]);

/**
 * Checks that `value` is a message: an id, a known role, parts with a type each. Does not look into the parts; unknown fields
 * stay. @returns the same object, or `undefined`; never throws.
 */
export function parseMessage(value: unknown): UIMessage | undefined {
  return messageFault(value) === undefined ? (value as UIMessage) : undefined;
}

/** The valid messages of a list, in order; bad ones are left out. Anything but a list is an empty one. */
export function parseMessages(list: unknown): UIMessage[] {
  if (!Array.isArray(list)) return [];
  return list.filter((value): value is UIMessage => messageFault(value) === undefined);
}

/** A message that was accepted, or why it was not, in words for the sender. */
export type ParsedUserMessage =
  | { readonly message: UIMessage }
  | { readonly reason: string; readonly code: "bad_input" | "too_large" };

/** Checks a client's message as a user's: structure, allowed types (`text`, `file`, `data-*`), fields, sizes. Never throws. */
export function parseUserMessage(value: unknown): ParsedUserMessage {
  const crowded = partsFault(value);
  if (crowded !== undefined) return { reason: crowded, code: "too_large" };
  const fault = messageFault(value) ?? userFault(value as UIMessage);
  if (fault !== undefined) return { reason: fault, code: "bad_input" };
  const message = value as UIMessage;
  const size = valuesFault(message) ?? sizeFault(message);
  return size === undefined ? { message } : { reason: size, code: "too_large" };
}

function partsFault(value: unknown): string | undefined {
  const parts = isRecord(value) ? own(value, "parts") : undefined;
  if (!Array.isArray(parts) || parts.length <= MAX_MESSAGE_PARTS) return undefined;
  return `it has ${parts.length} parts, and a message may have ${MAX_MESSAGE_PARTS}`;
}

/** Only what is not too deep may be counted. */
function valuesFault(message: UIMessage): string | undefined {
  if (countValues(message, MAX_MESSAGE_VALUES) <= MAX_MESSAGE_VALUES) return undefined;
  return `it holds more than ${MAX_MESSAGE_VALUES} values; send what is large as text, or as a file`;
}

/** How many values there are, or more than `most` as soon as there are more. */
function countValues(value: unknown, most: number): number {
  if (typeof value !== "object" || value === null) return 1;
  let count = 1;
  for (const item of Array.isArray(value) ? (value as unknown[]) : Object.values(value)) {
    count += countValues(item, most - count);
    if (count > most) return count;
  }
  return count;
}

function userFault(message: UIMessage): string | undefined {
  if (message.role !== "user") return `role must be "user", not "${message.role}"`;
  if (message.parts.length === 0) return "parts must not be empty";
  for (const [index, part] of message.parts.entries()) {
    const reason = userPartFault(part);
    if (reason !== undefined) return `parts[${index}]: ${reason}`;
  }
  return depthFault(message, MAX_DEPTH);
}

/** Why a user's message is too large to be kept whole, if it is. What JSON cannot hold is for others to refuse. */
export function sizeFault(message: UIMessage): string | undefined {
  let json: string;
  try {
    json = JSON.stringify(message);
  } catch {
    return undefined;
  }
  if (json.length * 3 <= MAX_USER_MESSAGE_BYTES) return undefined;
  const size = utf8Length(json);
  if (size <= MAX_USER_MESSAGE_BYTES) return undefined;
  return `it takes ${size} bytes, and a message may take ${MAX_USER_MESSAGE_BYTES}; send it in several messages, or as a file at a URL`;
}

/** Why a value does not have the structure of a message, if so. */
export function messageFault(value: unknown): string | undefined {
  if (!isRecord(value)) return "a message must be an object";
  if (hasProtoKey(value)) return 'a message must not have a "__proto__" field';
  const id = own(value, "id");
  if (typeof id !== "string" || id === "") return "id must be a non-empty string";
  if (id.length > MAX_ID_LENGTH) return `id must not be longer than ${MAX_ID_LENGTH} characters`;
  // Ids are keys of rows: half a surrogate pair would not come back from SQLite as it went in.
  if (!id.isWellFormed()) return "id must be well-formed text";
  if (!roles.has(own(value, "role"))) return 'role must be "user", "assistant" or "system"';
  const parts = own(value, "parts");
  if (!Array.isArray(parts)) return "parts must be an array";
  for (const [index, part] of parts.entries()) {
    if (!isRecord(part)) return `parts[${index}] must be an object`;
    if (hasProtoKey(part)) return `parts[${index}] must not have a "__proto__" field`;
    const type = own(part, "type");
    if (typeof type !== "string" || type === "") return `parts[${index}].type must be a non-empty string`;
  }
  return undefined;
}

function userPartFault(part: { readonly type: string }): string | undefined {
  const fields: { type: string; text?: unknown; mediaType?: unknown; url?: unknown; id?: unknown } = part;
  if (fields.type === "text") return typeof fields.text === "string" ? undefined : "text must be a string";
  if (fields.type === "file") {
    if (typeof fields.mediaType !== "string" || fields.mediaType === "") return "mediaType must be a non-empty string";
    if (typeof fields.url !== "string" || fields.url === "") return "url must be a non-empty string";
    return isTakenUrl(fields.url)
      ? undefined
      : "url must begin with https:, http: or data:, or be that of a file of this conversation";
  }
  if (fields.type.startsWith("data-") && fields.type !== "data-") {
    if (!("data" in fields)) return "data is missing";
    return fields.id === undefined || typeof fields.id === "string" ? undefined : "id must be a string";
  }
  if (isToolType(fields.type)) return "a user message cannot hold tool calls";
  return `a user message cannot hold a part of type "${fields.type.slice(0, 64)}"`;
}

/** Whether the conversion for the model can read the address of a file. It throws for what cannot be parsed. */
export function isUrl(url: string): boolean {
  // A data URL can be megabytes of base64, and all of them parse.
  return url.startsWith("data:") || URL.canParse(url);
}

/** Whether a user's file may be there: on the web, in the address itself, or kept with the conversation. Others are the app's. */
function isTakenUrl(url: string): boolean {
  if (/^(data|https?):/i.test(url)) return isUrl(url);
  return toReference(url)?.kind === "media";
}

function depthFault(value: unknown, left: number): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (left === 0) return `a message must not be nested deeper than ${MAX_DEPTH} levels`;
  if (!Array.isArray(value) && hasProtoKey(value)) return 'a message must not have a "__proto__" field';
  for (const item of Object.values(value)) {
    const fault = depthFault(item, left - 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

// JSON.parse makes "__proto__" an own field. It does no harm until somebody copies it by assignment.
function hasProtoKey(value: object): boolean {
  return Object.hasOwn(value, "__proto__");
}

function own(value: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}
