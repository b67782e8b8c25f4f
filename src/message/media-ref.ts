import { firstChars } from "./cut-value.ts";
import { isRecord } from "../base/json.ts";
import { asPart, isTerminal, isToolPart, type Part, type UIMessage } from "./types.ts";

/** Shorter ones stay in the message. */
export const MIN_MOVED_CHARS = 32 * 1024;
/** How much of a long text stays in the message. */
const KEPT_CHARS = 4_000;
/** Values that lie deeper are not looked at. */
const MAX_DEPTH = 24;

/** Names of files are SHA-256 in hex. */
const NAME = "[0-9a-f]{64}";
/** A path. A colon only behind a slash: in front of it stands a scheme. */
const PATH = "(?:/[^\\s?#]*|[^\\s:?#]*)";
const MEDIA = new RegExp(`^${PATH}/files/(${NAME})$`);
const TEXT = new RegExp(`\\n\\[… ([0-9]+) characters in all; the whole text is at ${PATH}/files/(${NAME})\\]$`);
const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+(?:;[\w.+-]+=[\w.+"-]+)*)(;base64)?,/i;
const MAX_REFERENCE = KEPT_CHARS + 2_000;

/** A long text, or the bytes of a data URL, that need not stand in a message. */
export type Movable =
  | { readonly kind: "media"; readonly mediaType: string; readonly url: string }
  | { readonly kind: "text"; readonly text: string };

/** Where the data of a message is, if it does not stand in it. */
interface MediaReference {
  readonly kind: Movable["kind"];
  readonly name: string;
}

/** What in a message could be kept elsewhere: data URLs in files and outputs of tools, and long texts in those outputs. */
export function movablesOf(message: UIMessage): Movable[] {
  const found = new Map<string, Movable>();
  mapMedia(message, (text) => {
    const movable = toMovable(text);
    if (movable !== undefined) found.set(text, movable);
    return text;
  });
  return [...found.values()];
}

/** Files that a message refers to. */
export function referencesOf(message: UIMessage): MediaReference[] {
  const found = new Map<string, MediaReference>();
  mapMedia(message, (text) => {
    const reference = toReference(text);
    if (reference !== undefined) found.set(reference.name, reference);
    return text;
  });
  return [...found.values()];
}

/** What stands in a message for something that is kept at `address`. */
export function referenceTo(movable: Movable, address: string): string {
  if (movable.kind === "media") return address;
  const { text } = movable;
  return `${firstChars(text, KEPT_CHARS)}\n[… ${text.length} characters in all; the whole text is at ${address}]`;
}

/** What a text refers to, if it does. */
export function toReference(text: string): MediaReference | undefined {
  if (text.length > MAX_REFERENCE) return undefined;
  const media = MEDIA.exec(text)?.[1];
  if (media !== undefined) return { kind: "media", name: media };
  const name = TEXT.exec(text)?.[2];
  return name === undefined ? undefined : { kind: "text", name };
}

/** A reference to a file that `isKnown`, by another address of the agent; any other text as it is. */
export function withAddress(text: string, address: string, isKnown: (name: string) => boolean): string {
  const reference = toReference(text);
  if (reference === undefined || !isKnown(reference.name)) return text;
  const url = `${address}/files/${reference.name}`;
  return reference.kind === "media" ? url : `${text.slice(0, text.lastIndexOf(" is at ") + " is at ".length)}${url}]`;
}

/** The texts in an output that are cut to their beginning, and how many characters of each are kept elsewhere. */
export function shortenedTexts(output: unknown): { readonly text: string; readonly missing: number }[] {
  const found: { text: string; missing: number }[] = [];
  mapTexts(
    output,
    (text) => {
      const length = text.length > MAX_REFERENCE ? undefined : TEXT.exec(text)?.[1];
      if (length !== undefined) found.push({ text, missing: Math.max(0, Number(length) - text.length) });
      return text;
    },
    0,
  );
  return found;
}

/** A message with other texts in the places where media and long texts may stand. The same one when none changed. */
export function mapMedia(message: UIMessage, change: (text: string) => string): UIMessage {
  const parts = message.parts.map((part): Part => {
    if (part.type === "file") {
      if (typeof part.url !== "string") return part;
      const url = change(part.url);
      return url === part.url ? part : { ...part, url };
    }
    if (!isToolPart(part) || !isTerminal(part) || part.output === undefined) return part;
    const output = mapTexts(part.output, change, 0);
    return output === part.output ? part : asPart({ ...part, output });
  });
  return parts.every((part, at) => part === message.parts[at]) ? message : { ...message, parts };
}

/** A client's older state of a message, with references where the stored one has them: what was moved since is no edit. */
export function withStoredMedia(stored: UIMessage | undefined, message: UIMessage): UIMessage {
  if (stored === undefined || referencesOf(stored).length === 0) return message;
  const parts = message.parts.map((part, at): Part => {
    const before = stored.parts[at];
    const isFile = part.type === "file" && before?.type === "file";
    if (!isFile || !part.url.startsWith("data:") || toReference(before.url) === undefined) return part;
    return { ...part, url: before.url };
  });
  return { ...message, parts };
}

function toMovable(text: string): Movable | undefined {
  if (text.length < MIN_MOVED_CHARS) return undefined;
  const mediaType = DATA_URL.exec(text)?.[1];
  if (mediaType !== undefined) return { kind: "media", mediaType, url: text };
  // Other addresses are short, and what begins like this cannot be read anyway.
  return text.startsWith("data:") ? undefined : { kind: "text", text };
}

function mapTexts(value: unknown, change: (text: string) => string, depth: number): unknown {
  if (typeof value === "string") return change(value);
  if (depth > MAX_DEPTH) return value;
  if (Array.isArray(value)) {
    const list: readonly unknown[] = value;
    const items = list.map((item) => mapTexts(item, change, depth + 1));
    return items.every((item, at) => item === list[at]) ? value : items;
  }
  // Clients make a picture of its letters: they would have to know where else to look.
  if (!isRecord(value) || isInlineMedia(value)) return value;
  const fields = Object.entries(value).map(([key, item]) => [key, mapTexts(item, change, depth + 1)] as const);
  return fields.every(([key, item]) => item === value[key]) ? value : Object.fromEntries(fields);
}

/** Base64 beside the type of what it holds, as the AI SDK and MCP write it. */
function isInlineMedia(value: Record<string, unknown>): boolean {
  const typed = [value.mediaType, value.mimeType, value.media_type].some((type) => typeof type === "string");
  return typed && typeof value.data === "string" && !value.data.startsWith("data:");
}

/** The bytes of a data URL; undefined when it cannot be read. */
export function bytesOfDataUrl(url: string): Uint8Array | undefined {
  const head = DATA_URL.exec(url);
  if (head === null) return undefined;
  const data = url.slice(head[0].length);
  try {
    if (head[2] === undefined) return new TextEncoder().encode(decodeURIComponent(data));
    const letters = atob(data.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/** A data URL of some bytes. */
export function dataUrlOf(bytes: Uint8Array, mediaType: string): string {
  const CHUNK = 32_768;
  let letters = "";
  for (let at = 0; at < bytes.length; at += CHUNK) letters += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return `data:${mediaType};base64,${btoa(letters)}`;
}
