import type { ModelMessage, ToolModelMessage } from "ai";
import { cutMiddle } from "../message/cut-middle.ts";
import { type Cutting, cutValue } from "../message/cut-value.ts";
import type { ModelLimits } from "./model-limits.ts";
import type { OverflowPolicy } from "./overflow.ts";
import { unitsOfText } from "./text-units.ts";
import { usable } from "./token-budget.ts";
import { unitsOfContentPart } from "./units.ts";

/** How much of what may be sent one output of a tool is shown. */
const OUTPUT_SHARE = 1 / 4;
/** How much of it all outputs of one step are shown together. */
const STEP_SHARE = 1 / 2;
/** Room is counted in quarters of a unit, so that it is a whole number. */
const QUARTERS = 4;
/** A note of this many times its length has room for a long one. */
const ROOM_FOR_NOTE = 4;
/** Each try is shorter than the one before by at least this. */
const SHORTER = 0.9;
const ANY_LINES = Number.MAX_SAFE_INTEGER;
/** Where what was cut when it was produced is kept. */
const KEPT = /(?:the whole (?:text|output, as JSON,)|it) is in ([0-9a-f]{64})/;

type Result = Extract<ToolModelMessage["content"][number], { type: "tool-result" }>;
type Output = Result["output"];

/** How much of outputs a model is shown, in units. */
interface OutputBound {
  readonly one: number;
  readonly step: number;
}

/** How much of outputs a model is shown. Depends on fixed limits only, so that what was sent once is sent again byte for byte. */
export function outputBound(limits: ModelLimits, { threshold, maxInputTokens }: OverflowPolicy): OutputBound {
  const most = Math.min(usable(limits), threshold * maxInputTokens);
  return { one: Math.floor(OUTPUT_SHARE * most), step: Math.floor(STEP_SHARE * most) };
}

/** Messages cut to fit a small window: long tool outputs lose their middle. Stores nothing; same input, same bytes. */
export class BoundOutputs {
  readonly #known = new WeakMap<ModelMessage, { readonly bound: OutputBound; readonly message: ModelMessage }>();
  readonly #originals = new WeakMap<ModelMessage, ModelMessage>();

  /** @param idOf the stored message that a message was made from. */
  of(
    messages: readonly ModelMessage[],
    bound: OutputBound,
    idOf: (message: ModelMessage) => string | undefined,
  ): ModelMessage[] {
    return messages.map((message) => {
      if (message.role !== "tool") return message;
      const known = this.#known.get(message);
      if (known?.bound.one === bound.one && known.bound.step === bound.step) return known.message;
      const bounded = boundMessage(message, bound, idOf(message));
      this.#known.set(message, { bound, message: bounded });
      if (bounded !== message) this.#originals.set(bounded, message);
      return bounded;
    });
  }

  /** The message before it was bounded. */
  originalOf(message: ModelMessage): ModelMessage {
    return this.#originals.get(message) ?? message;
  }
}

/** The same message when all of it is within the bound. */
function boundMessage(message: ToolModelMessage, { one, step }: OutputBound, id: string | undefined): ToolModelMessage {
  const sizes = message.content.map((part) => unitsOfContentPart(part));
  const most = Math.min(one, fairShare(sizes, step));
  if (sizes.every((size) => size <= most)) return message;
  const content = message.content.map((part, index) => {
    if (part.type !== "tool-result" || (sizes[index] ?? 0) <= most) return part;
    return { ...part, output: boundOne(part, most, id) };
  });
  return { ...message, content };
}

function boundOne({ output, toolCallId }: Result, most: number, id: string | undefined): Output {
  const kept = KEPT.exec(textOf(output))?.[1];
  const whole = [
    ...(id === undefined ? [] : [`call ${toolCallId} of message ${id} has the whole output`]),
    ...(kept === undefined ? [] : [`the whole text is in ${kept}`]),
    "ask for a part of it if you need more",
  ].join("; ");
  const full = (chars: number, lines: number) =>
    `[… ${chars} characters${lines === 0 ? "" : ` (${lines} lines)`} left out, too much to show at once; ${whole} …]`;
  switch (output.type) {
    case "text":
    case "error-text":
      return { ...output, value: cutText(output.value, most, full) };
    case "json":
    case "error-json":
      return { ...output, value: cutJson(output.value, most, full) as typeof output.value };
    case "content":
      return { ...output, value: cutContent(output.value, most, full) };
    default:
      return output;
  }
}

type Note = (chars: number, lines: number) => string;

/** The beginning and the end of a text that weigh so much together, with a note between them. */
function cutText(text: string, most: number, full: Note): string {
  const size = unitsOfText(text);
  if (size <= most) return text;
  const short: Note = (chars) => `[… ${chars} characters left out …]`;
  const note = most > (ROOM_FOR_NOTE * full(text.length, text.length).length) / QUARTERS ? full : short;
  let chars = Math.floor((text.length * most) / size);
  for (;;) {
    const cut = cutMiddle(text, ANY_LINES, chars, note);
    const weight = unitsOfText(cut);
    if (weight <= most || chars <= 1) return cut;
    chars = Math.floor(chars * Math.min(SHORTER, most / weight));
  }
}

function cutJson(value: unknown, most: number, full: Note): unknown {
  const size = (json: string) => Math.ceil(QUARTERS * unitsOfText(json));
  const inUnits: Cutting = {
    size,
    text(text, room) {
      const json = JSON.stringify(text);
      if (size(json) <= room) return text;
      // Quotes and line breaks take more room as JSON than they are long.
      return cutText(text, ((room / QUARTERS) * unitsOfText(text)) / unitsOfText(json), full);
    },
    moreItems: (count) => `[… ${count} more items left out …]`,
    moreFields: (count) => `[… ${count} more fields left out …]`,
  };
  return cutValue(value, Math.floor(QUARTERS * most), inUnits);
}

type Content = Extract<Output, { type: "content" }>["value"];

/** Pictures and files stay: a piece of one is none. Texts share what they leave. */
function cutContent(value: Content, most: number, full: Note): Content {
  const texts = value.map((item) => (item.type === "text" ? unitsOfText(item.text) : 0));
  const share = fairShare(texts, most);
  return value.map((item) => (item.type === "text" ? { ...item, text: cutText(item.text, share, full) } : item));
}

/** The most that each may have so that all together have no more than `room`: what small ones leave goes to the others. */
function fairShare(sizes: readonly number[], room: number): number {
  let left = room;
  const sorted = sizes.toSorted((a, b) => a - b);
  for (const [index, size] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - index));
    if (size > share) return share;
    left -= size;
  }
  return Number.POSITIVE_INFINITY;
}

function textOf(output: Output): string {
  if (output.type === "execution-denied") return "";
  if (output.type === "text" || output.type === "error-text") return output.value;
  return JSON.stringify(output.value) ?? "";
}
