import { cutText, cutValue, firstChars } from "./cut-value.ts";
import { isRecord, utf8Length } from "../base/json.ts";
import { asPart, isToolPart, type Part, type ToolPart, type UIMessage } from "./types.ts";

/** The most that a stored message takes, unless a user wrote it: some hosts refuse rows of 2 MB. */
export const MAX_MESSAGE_BYTES = 1_800_000;
/** Outputs up to this size are never cut, and cut ones are about this large. */
export const KEPT_OUTPUT_BYTES = 1_000;
/** How much of a text is kept when texts have to be cut. */
export const KEPT_TEXT_CHARS = 500;

const RERUN_NOTE = "This output was cut because it was too large to store. Run the tool again if more of it is needed.";

/** A message that fits into a row, and its JSON, so that it is not encoded twice. */
interface BoundMessage {
  readonly message: UIMessage;
  readonly json: string;
}

/**
 * Makes a message fit into a row. A user's words are never cut: too large ones were refused when they came. Else tool outputs go
 * first, the largest first, keeping their shape; then texts; then whatever is large. `metadata.compactedToolOutputs` lists the
 * calls and `metadata.compactedTextParts` the positions of what was cut. Never throws. @returns the same message when it fits.
 */
export function boundMessage(
  message: UIMessage,
  limit: number = message.role === "user" ? Number.POSITIVE_INFINITY : MAX_MESSAGE_BYTES,
): BoundMessage {
  const encoded = encode(message);
  if (encoded !== undefined && fits(encoded, limit)) return { message, json: encoded };
  const work = new Cuts(encoded === undefined ? encodable(message) : message, limit);
  for (const stage of [cutOutputs, cutTexts, cutOthers, dropEarlier]) {
    stage(work);
    const done = work.result();
    if (done !== undefined) return done;
  }
  return work.minimum();
}

/** The message being cut: its parts, their sizes, and what was done to them. */
class Cuts {
  readonly limit: number;
  readonly message: UIMessage;
  parts: Part[];
  sizes: number[];
  /** Bytes over the limit, by the count of what was cut so far. */
  over: number;
  readonly outputs = new Set<string>();
  readonly texts = new Set<number>();
  keepFields = true;

  constructor(message: UIMessage, limit: number) {
    this.limit = limit;
    this.message = message;
    this.parts = [...message.parts];
    this.sizes = this.parts.map(jsonBytes);
    this.over = jsonBytes(message) - limit;
  }

  /** Offers the parts to `cut`, largest first and the older of equals first, until enough is gone. */
  each(cut: (part: Part, index: number) => Part | undefined): void {
    const order = [...this.parts.keys()].sort((a, b) => (this.sizes[b] ?? 0) - (this.sizes[a] ?? 0) || a - b);
    for (const index of order) {
      if (this.over <= 0) return;
      const part = this.parts[index];
      const smaller = part === undefined ? undefined : cut(part, index);
      if (smaller === undefined) continue;
      const size = jsonBytes(smaller);
      this.over -= (this.sizes[index] ?? 0) - size;
      this.parts[index] = smaller;
      this.sizes[index] = size;
    }
  }

  noteOutput(part: ToolPart): void {
    if (this.outputs.has(part.toolCallId)) return;
    this.over += jsonBytes(part.toolCallId) + (this.outputs.size === 0 ? LIST_BYTES : 1);
    this.outputs.add(part.toolCallId);
  }

  noteText(index: number): void {
    this.over += String(index).length + (this.texts.size === 0 ? LIST_BYTES : 1);
    this.texts.add(index);
  }

  result(): BoundMessage | undefined {
    const { id, role, metadata } = this.message;
    const fields = this.keepFields ? this.message : { id, role };
    const message: UIMessage = { ...fields, parts: this.parts };
    const lists = this.#lists(metadata);
    if (lists !== undefined && (metadata === undefined || isRecord(metadata))) {
      message.metadata = { ...(this.keepFields ? metadata : undefined), ...lists };
    }
    const json = encode(message);
    if (json === undefined) return undefined;
    this.over = utf8Length(json) - this.limit;
    return this.over <= 0 ? { message, json } : undefined;
  }

  /** What is left when nothing else helps. */
  minimum(): BoundMessage {
    const { id, role } = this.message;
    const message: UIMessage = { id, role, parts: [note("This message was too large to store.")] };
    return { message, json: JSON.stringify(message) };
  }

  #lists(metadata: unknown): Record<string, unknown> | undefined {
    if (this.outputs.size === 0 && this.texts.size === 0) return undefined;
    const before = isRecord(metadata) ? metadata : {};
    return {
      ...(this.outputs.size > 0 && { compactedToolOutputs: union(before.compactedToolOutputs, this.outputs) }),
      ...(this.texts.size > 0 && { compactedTextParts: union(before.compactedTextParts, this.texts) }),
    };
  }
}

/** What naming a list in the metadata takes, at most. */
const LIST_BYTES = 64;

function cutOutputs(work: Cuts): void {
  work.each((part) => {
    if (!isToolPart(part) || part.output === undefined || jsonBytes(part.output) <= KEPT_OUTPUT_BYTES) return undefined;
    work.noteOutput(part);
    return asPart({ ...part, output: cutOutput(part.output) });
  });
}

function cutOutput(output: unknown): unknown {
  const room = KEPT_OUTPUT_BYTES - RERUN_NOTE.length;
  const smaller = cutValue(output, room);
  if (typeof smaller === "string") return `${smaller}\n${RERUN_NOTE}`;
  if (Array.isArray(smaller)) return [...(smaller as unknown[]), RERUN_NOTE];
  return isRecord(smaller) ? { ...smaller, note: smaller.note ?? RERUN_NOTE } : RERUN_NOTE;
}

function cutTexts(work: Cuts): void {
  work.each((part, index) => {
    if (part.type !== "text" && part.type !== "reasoning") return undefined;
    if (typeof part.text !== "string" || part.text.length <= KEPT_TEXT_CHARS) return undefined;
    work.noteText(index);
    const mark = `… [cut because it was too large to store, ${part.text.length} characters in all]`;
    return { ...part, text: firstChars(part.text, KEPT_TEXT_CHARS) + mark };
  });
}

function cutOthers(work: Cuts): void {
  work.each((part, index) => {
    if ((work.sizes[index] ?? 0) <= KEPT_OUTPUT_BYTES) return undefined;
    if (isToolPart(part)) {
      work.noteOutput(part);
      return asPart(bareTool(part));
    }
    if (part.type === "text" && typeof part.text === "string") {
      return { type: "text", text: part.text, ...(part.state && { state: part.state }) };
    }
    if (part.type.startsWith("data-") && "data" in part) {
      return { ...part, data: cutValue(part.data, KEPT_OUTPUT_BYTES) };
    }
    if (part.type === "file") return note(`The file ${part.filename ?? part.mediaType} was too large to store.`);
    return note(`A part of type ${part.type} was too large to store.`);
  });
}

/** The call with no more than what is needed to send it to a model again. */
function bareTool(part: ToolPart): ToolPart {
  const { type, toolCallId, state, approval } = part;
  const bare: ToolPart = { type, toolCallId, state };
  if (part.toolName !== undefined) bare.toolName = part.toolName;
  if (part.input !== undefined) bare.input = cutValue(part.input, KEPT_OUTPUT_BYTES);
  if (part.output !== undefined) bare.output = cutValue(part.output, KEPT_OUTPUT_BYTES);
  if (part.errorText !== undefined) bare.errorText = cutText(part.errorText, KEPT_OUTPUT_BYTES);
  if (part.preliminary !== undefined) bare.preliminary = part.preliminary;
  if (part.providerExecuted !== undefined) bare.providerExecuted = part.providerExecuted;
  if (approval !== undefined)
    bare.approval = { id: approval.id, ...("approved" in approval && { approved: approval.approved }) };
  return bare;
}

/** Keeps the last parts that fit; fields that nobody here knows go too. */
function dropEarlier(work: Cuts): void {
  work.keepFields = false;
  if (work.result() !== undefined) return;
  work.outputs.clear();
  work.texts.clear();
  // Half the room: the rest of the row is not counted exactly here.
  let room = work.limit / 2;
  let first = work.parts.length;
  while (first > 0 && (work.sizes[first - 1] ?? 0) + 1 <= room) {
    first -= 1;
    room -= (work.sizes[first] ?? 0) + 1;
  }
  work.parts = [note(`${first} earlier parts were too large to store.`), ...work.parts.slice(first)];
  work.sizes = work.parts.map(jsonBytes);
}

/** Replaces what JSON cannot hold: cycles, too deep nesting, big integers. */
function encodable(message: UIMessage): UIMessage {
  const parts = message.parts.map((part): Part => {
    if (encode(part) !== undefined) return part;
    if (!isToolPart(part)) return note(`A part of type ${part.type} could not be stored.`);
    const tool: ToolPart = { type: part.type, toolCallId: part.toolCallId, state: part.state };
    if (part.toolName !== undefined) tool.toolName = part.toolName;
    if (part.errorText !== undefined) tool.errorText = part.errorText;
    if (part.approval !== undefined) tool.approval = { id: part.approval.id };
    tool.input = encode(part.input) === undefined ? {} : part.input;
    if (part.state === "output-available") {
      tool.output = encode(part.output) === undefined ? "The output could not be stored: it is not JSON." : part.output;
    }
    return asPart(tool);
  });
  const { id, role, metadata } = message;
  return { id, role, parts, ...(encode(metadata) !== undefined && { metadata }) };
}

function note(text: string): Part {
  return { type: "text", text: `[${firstChars(text, KEPT_TEXT_CHARS)}]`, state: "done" };
}

function union(before: unknown, now: ReadonlySet<unknown>): unknown[] {
  return [...new Set([...(Array.isArray(before) ? (before as unknown[]) : []), ...now])];
}

function fits(json: string, limit: number): boolean {
  if (json.length * 3 <= limit) return true;
  return json.length <= limit && utf8Length(json) <= limit;
}

function encode(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

function jsonBytes(value: unknown): number {
  return utf8Length(encode(value) ?? "");
}
