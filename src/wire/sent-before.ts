import { newId } from "../base/id.ts";
import { isRecord, tryParseJson } from "../base/json.ts";
import { type ChatBody, MAX_TRANSCRIPT_MESSAGES } from "./chat-body.ts";
import { MAX_TRANSCRIPT_VALUES } from "./chat-text.ts";
import { MAX_JSON_DEPTH, MAX_JSON_VALUES, readJson } from "./json.ts";
import { JsonScan } from "./json-scan.ts";

/** What stands before the body in the frame of a chat request. In a text its quotes would have backslashes before them. */
const BODY = '"body":"';
/** Of a longer conversation nothing is remembered, in UTF-16 units of the frame. */
const MAX_REMEMBERED = 1_500_000;
/** As much is parsed in one go. */
const MAX_REST = 2 * MAX_JSON_VALUES;

/** A message that its client has sent before: what it says is in {@link ChatBody.content}. */
export class NamedMessage {
  readonly id: string;
  readonly role: string;

  constructor(id: string, role: string) {
    this.id = id;
    this.role = role;
  }
}

/** A beginning that many bodies of a client have. */
interface Beginning {
  /** As it stands in the frame, with its escapes: from the body's first character to the end of a message. */
  readonly text: string;
  /** What stands before its first message, in the same way. */
  readonly head: string;
  /** All but the last by name alone: that one may be sent again to be changed, or answered anew. */
  readonly messages: readonly unknown[];
  /** How many values there are in it. */
  readonly values: number;
}

/**
 * What one client has sent of a long conversation. Public clients send all that they show with each message, in the same
 * characters: what stands there as it stood the last time is found by comparing, and is not parsed again.
 */
export class SentBefore {
  #beginning: Beginning | undefined;
  /** Stands for what is known while the rest is parsed. No client can know it. */
  readonly #mark = newId();

  /** A frame without the messages that are known; undefined when it does not begin with them, or is long all the same. */
  rest(data: string): string | undefined {
    const known = this.#beginning;
    if (known === undefined || data.length - known.text.length > MAX_REST) return undefined;
    const start = bodyIn(data);
    const end = start + known.text.length;
    if (data.slice(start, end) !== known.text) return undefined;
    return `${data.slice(0, start)}${known.head}${escaped(JSON.stringify(this.#mark))}${data.slice(end)}`;
  }

  /**
   * What is asked in a frame whose {@link SentBefore.rest} was read, with the messages that this leaves out. Remembers the new ones.
   * @returns undefined when the frame has to be read whole: it is too much, or something else.
   */
  whole<T extends ChatBody>(data: string, rest: string, read: T): T | undefined {
    const known = this.#beginning;
    if (known === undefined || read.messages[0] !== this.#mark) return undefined;
    const messages = [...known.messages, ...read.messages.slice(1)];
    let parsed: readonly unknown[] | undefined;
    const content = (at: number) => (parsed ??= messagesIn(known))[at];
    if (read.messages.length > 1) {
      const more = beginningOf(rest, textOfBody(rest), messages);
      const values = known.values + (more?.values ?? MAX_REST);
      if (messages.length > MAX_TRANSCRIPT_MESSAGES || values > MAX_TRANSCRIPT_VALUES) return undefined;
      const added = (more?.text.length ?? 0) - known.head.length - escaped(JSON.stringify(this.#mark)).length;
      const start = bodyIn(data);
      this.#keep(more && { ...more, values, text: data.slice(start, start + known.text.length + added) });
    }
    return { ...read, messages, content };
  }

  /** Remembers a frame that was read whole. @param body its body, without the escapes that it has in the frame. */
  remember(data: string, body: string, messages: readonly unknown[]): void {
    this.#keep(data.length > MAX_REMEMBERED ? undefined : beginningOf(data, body, messages));
  }

  #keep(beginning: Beginning | undefined): void {
    this.#beginning = beginning === undefined || beginning.text.length > MAX_REMEMBERED ? undefined : beginning;
  }
}

/** What can be known of a frame again. Undefined when it is not written as most are. */
function beginningOf(data: string, body: string, messages: readonly unknown[]): Beginning | undefined {
  const scan = new JsonScan(body, "messages").run();
  const [open = 0, close = 0] = [scan.list?.cuts[0], scan.list?.cuts.at(-1)];
  // Only what is closed by a brace cannot go on when more stands behind it.
  if (scan.list === undefined || scan.isOdd || body[close - 1] !== "}") return undefined;
  const start = bodyIn(data);
  const text = data.slice(start, data.lastIndexOf(`${escaped(body.slice(close))}"`));
  const head = escaped(body.slice(0, open + 1));
  if (!text.startsWith(head) || tryParseJson(`"${text}"`) !== body.slice(0, close)) return undefined;
  const last = messages.length - 1;
  return { text, head, messages: messages.map((one, at) => (at < last ? named(one) : one)), values: scan.list.values };
}

function named(message: unknown): unknown {
  if (message instanceof NamedMessage || !isRecord(message)) return message;
  const { id, role } = message;
  return typeof id === "string" && typeof role === "string" ? new NamedMessage(id, role) : message;
}

/** The messages that are known, parsed once more. */
function messagesIn({ text }: Beginning): readonly unknown[] {
  const read = readJson(`${String(tryParseJson(`"${text}"`))}]}`, MAX_JSON_DEPTH);
  return read.ok && isRecord(read.value) && Array.isArray(read.value.messages) ? read.value.messages : [];
}

/** Where the body of a frame begins. */
function bodyIn(data: string): number {
  return data.indexOf(BODY) + BODY.length;
}

/** The body of a frame that was read. */
function textOfBody(data: string): string {
  const frame = tryParseJson(data);
  const init = isRecord(frame) ? frame.init : undefined;
  return isRecord(init) && typeof init.body === "string" ? init.body : "";
}

/** A text as it stands within another one in JSON. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
