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
  MAX_JSON_VALUES,
  type NotRead,
  notReadWords,
  readJson,
} from "./json.ts";
import { isRecord } from "../base/json.ts";
import { JsonScan, type ScannedList } from "./json-scan.ts";

/** How many values a whole transcript may hold: some hundreds for each of many thousand messages. */
const MAX_TRANSCRIPT_VALUES = 1_000_000;
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
  const read = readJson(`${text.slice(0, cuts[0])}[]${text.slice((cuts.at(-1) ?? 0) + 1)}`, MAX_JSON_DEPTH);
  if (!read.ok || !isRecord(read.value)) return notRead("not-json");
  const messages: unknown[] = [];
  for (const [piece, end] of cuts.slice(1).entries()) {
    await breathe();
    const part = readJson(`[${text.slice((cuts[piece] ?? 0) + 1, end)}]`, MAX_JSON_DEPTH);
    if (!part.ok) return notRead(part.why);
    for (const message of part.value as unknown[]) messages.push(message);
  }
  await breathe();
  return { value: { ...read.value, messages } };
}

function notRead(why: NotRead, maxValues?: number): ChatRefusal {
  const reason = `The body ${notReadWords(why, MAX_JSON_DEPTH, maxValues)}.`;
  return why === "too-many" ? { reason, code: "too_large" } : { reason };
}
