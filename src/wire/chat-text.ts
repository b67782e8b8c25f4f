import {
  type ChatBody,
  type ChatRefusal,
  MAX_TRANSCRIPT_MESSAGES,
  parseChatBody,
  tooManyMessages,
} from "./chat-body.ts";
import {
  fitsInValues,
  type JsonObject,
  MAX_JSON_DEPTH,
  MAX_JSON_LENGTH,
  MAX_JSON_VALUES,
  type NotRead,
  notReadWords,
  readJson,
} from "./json.ts";
import { isRecord } from "../base/json.ts";
import { JsonScan, type ScannedList } from "./json-scan.ts";

/** How many values a whole transcript may hold: some hundreds for each of many thousand messages. */
export const MAX_TRANSCRIPT_VALUES = 1_000_000;
/** As much of a text is looked at before others have their turn. */
const STEP_CHARS = 2 * 1024 * 1024;

/** Whether the body of a chat request is read in one go. Longer ones are for {@link readLongChat}. */
export function isShortChat(text: string): boolean {
  return fitsInValues(text, MAX_JSON_VALUES);
}

/** Reads the body of a chat request that {@link isShortChat}. Never throws. */
export function readChat(text: string): ChatBody | ChatRefusal {
  const read = readJson(text, MAX_JSON_DEPTH, MAX_JSON_VALUES);
  return read.ok ? parseChatBody(read.value) : notRead(read.why);
}

/** Reads a chat request's body of any length, in pieces; `breathe` is awaited in between, for others. Never throws. */
export async function readLongChat(text: string, breathe: () => Promise<void>): Promise<ChatBody | ChatRefusal> {
  const value = await readLongBody(text, breathe);
  return "reason" in value ? value : parseChatBody(value.value);
}

/** Undoes the escapes of a JSON text of any length, in pieces; `breathe` is awaited in between. @returns "" if it is none. */
export async function readLongText(quoted: string, breathe: () => Promise<void>): Promise<string> {
  const pieces: string[] = [];
  const end = quoted.length - 1;
  for (let at = 1, stop = at; at < end; at = stop) {
    stop = Math.min(at + STEP_CHARS, end);
    if (stop < end) stop = beforeEscape(quoted, at, stop);
    const piece = readJson(`"${quoted.slice(at, stop)}"`, 0);
    if (!piece.ok) return "";
    pieces.push(piece.value as string);
    await breathe();
  }
  return pieces.join("");
}

/** The length of the longest escape, `\u0000`. */
const ESCAPE_CHARS = 6;

/** Where a text that begins at `from` may be cut, at `stop` or just before: not within an escape. */
function beforeEscape(text: string, from: number, stop: number): number {
  const last = text.lastIndexOf("\\", stop - 1);
  if (last < from || last < stop - ESCAPE_CHARS) return stop;
  let first = last;
  while (first > from && text[first - 1] === "\\") first--;
  // Of backslashes in a row, every second one is escaped.
  return (last - first) % 2 === 0 ? last : stop;
}

/** The messages of a frame that pushes a transcript, however long it is. Never throws. */
export async function readLongTranscript(
  text: string,
  breathe: () => Promise<void>,
): Promise<readonly unknown[] | ChatRefusal> {
  const read = await readLongBody(text, breathe);
  if ("reason" in read) return read;
  return isRecord(read.value) && Array.isArray(read.value.messages)
    ? (read.value.messages as unknown[])
    : { reason: "The frame's `messages` is missing or not a list." };
}

/** As {@link readLongChat}, before anything but its size is checked. */
export async function readLongBody(
  text: string,
  breathe: () => Promise<void>,
): Promise<{ readonly value: unknown } | ChatRefusal> {
  if (isShortChat(text)) {
    const read = readJson(text, MAX_JSON_DEPTH, MAX_JSON_VALUES);
    return read.ok ? read : notRead(read.why);
  }
  const scan = new JsonScan(text, "messages");
  while (scan.step(STEP_CHARS)) {
    const refusal = tooMuch(scan);
    if (refusal !== undefined) return refusal;
    await breathe();
  }
  await breathe();
  const refusal = tooMuch(scan);
  if (refusal !== undefined) return refusal;
  const { list } = scan;
  if (scan.isOdd || !scan.isClosed) return notRead("not-json");
  if (list !== undefined && list.elements > MAX_TRANSCRIPT_MESSAGES) return tooManyMessages();
  if (list === undefined) {
    if (text.length > MAX_JSON_LENGTH) return notRead("too-long");
    const read = readJson(text, MAX_JSON_DEPTH);
    return read.ok ? read : notRead(read.why);
  }
  return readPieces(text, list, breathe);
}

/** Whether it is too much already, whatever comes behind. */
function tooMuch(scan: JsonScan): ChatRefusal | undefined {
  const { depth, values, outside } = scan;
  if (depth > MAX_JSON_DEPTH) return notRead("too-deep");
  if (outside > MAX_JSON_VALUES) return notRead("too-many");
  return values - outside > MAX_TRANSCRIPT_VALUES ? notRead("too-many", MAX_TRANSCRIPT_VALUES) : undefined;
}

async function readPieces(
  text: string,
  { cuts }: ScannedList,
  breathe: () => Promise<void>,
): Promise<{ readonly value: JsonObject } | ChatRefusal> {
  const around = `${text.slice(0, cuts[0])}[]${text.slice((cuts.at(-1) ?? 0) + 1)}`;
  if (around.length > MAX_JSON_LENGTH) return notRead("too-long");
  const read = readJson(around, MAX_JSON_DEPTH);
  if (!read.ok || !isRecord(read.value)) return notRead("not-json");
  const messages: unknown[] = [];
  for (const [piece, end] of cuts.slice(1).entries()) {
    await breathe();
    const start = (cuts[piece] ?? 0) + 1;
    if (end - start > MAX_JSON_LENGTH) return notRead("too-long");
    const part = readJson(`[${text.slice(start, end)}]`, MAX_JSON_DEPTH);
    if (!part.ok) return notRead(part.why);
    for (const message of part.value as unknown[]) messages.push(message);
  }
  await breathe();
  return { value: { ...read.value, messages } };
}

function notRead(why: NotRead, maxValues?: number): ChatRefusal {
  const what = why === "too-long" ? "A message of the body, or what stands beside its messages," : "The body";
  const reason = `${what} ${notReadWords(why, MAX_JSON_DEPTH, maxValues)}.`;
  return why === "too-many" || why === "too-long" ? { reason, code: "too_large" } : { reason };
}
