import { firstChars } from "../message/cut-value.ts";
import { isRecord } from "../base/json.ts";
import { isToolPart, type ToolPart, toolName, type UIMessage } from "../message/types.ts";

/** The most of a message that can be found: of its texts, and of each thing that a tool was given or brought. */
const MAX_SAID = 100_000;
const MAX_VALUE = 4_000;
const MAX_DONE = 32_000;
/** Values that lie deeper are left out. */
const MAX_DEPTH = 12;

/** Bytes that were written out as letters say nothing to anybody. */
const DATA_URL = /data:[\w.+-]+\/[\w.+-]+[\w.+;=-]*,[A-Za-z0-9+/=_%-]*/g;
const BASE64 = /[A-Za-z0-9+/=_-]{200,}/g;

/** The tool by which a model searches. What it found is found where it was said, not a second time. */
export const SESSION_SEARCH_TOOL = "session_search";

/** What of a message can be found. */
interface SearchText {
  /** What was written. */
  readonly said: string;
  /** What tools were called, with what, and what they brought; and the names of files. */
  readonly done: string;
}

/** The text of a message that can be found: neither reasoning nor the contents of files. Bounded. */
export function searchText(message: UIMessage): SearchText {
  const said = new Pieces(MAX_SAID);
  const done = new Pieces(MAX_DONE);
  for (const part of message.parts) {
    if (part.type === "text") said.add(part.text);
    else if (part.type === "file") done.add(part.filename);
    else if (part.type === "source-url") done.add(part.title);
    else if (part.type === "source-document") done.add(part.title, part.filename);
    else if (isToolPart(part) && toolName(part) !== SESSION_SEARCH_TOOL) {
      done.add(toolName(part), bounded(part.input), bounded(part.output), bounded(part.errorText));
    }
  }
  return { said: said.text, done: done.text };
}

/** A message as somebody reads it who wants all of it: neither reasoning nor the contents of files. */
export function readableText(message: UIMessage): string {
  const pieces: string[] = [];
  for (const part of message.parts) {
    if (part.type === "text") pieces.push(part.text);
    else if (part.type === "file") pieces.push(`[file ${part.filename ?? part.mediaType}]`);
    else if (isToolPart(part)) pieces.push(readableCall(part));
  }
  return pieces.filter((piece) => piece !== "").join("\n\n");
}

function readableCall(part: ToolPart): string {
  const lines = [`[tool ${toolName(part)}]`];
  if (part.input !== undefined) lines.push(`input: ${readableValue(part.input)}`);
  if (part.output !== undefined) lines.push(`output: ${readableValue(part.output)}`);
  if (part.errorText !== undefined) lines.push(`error: ${part.errorText}`);
  return lines.join("\n");
}

function readableValue(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
  return withoutBytes(text, "[data]");
}

function bounded(value: unknown): string {
  const pieces = new Pieces(MAX_VALUE);
  collect(value, pieces, 0);
  return pieces.text;
}

/** The names and texts in a JSON value, as far as there is room. */
function collect(value: unknown, into: Pieces, depth: number): void {
  if (into.full || depth > MAX_DEPTH) return;
  if (typeof value === "string") into.add(value);
  else if (typeof value === "number") into.add(String(value));
  else if (Array.isArray(value)) for (const item of value as unknown[]) collect(item, into, depth + 1);
  else if (isRecord(value)) {
    for (const [name, item] of Object.entries(value)) {
      into.add(name);
      collect(item, into, depth + 1);
    }
  }
}

/** Texts, one after the other, up to a length. */
class Pieces {
  readonly #pieces: string[] = [];
  #room: number;

  constructor(room: number) {
    this.#room = room;
  }

  get full(): boolean {
    return this.#room <= 0;
  }

  get text(): string {
    return this.#pieces.join("\n");
  }

  add(...texts: readonly (string | undefined)[]): void {
    for (const text of texts) {
      if (text === undefined || text === "" || this.full) continue;
      const kept = withoutBytes(firstChars(text, Math.min(text.length, this.#room)), " ");
      this.#pieces.push(kept);
      this.#room -= kept.length + 1;
    }
  }
}

function withoutBytes(text: string, by: string): string {
  return text.replace(DATA_URL, by).replace(BASE64, by);
}
