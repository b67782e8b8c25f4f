import type { ModelMessage } from "ai";
import { PerdureError } from "../base/error.ts";
import { isRecord, sameJson } from "../base/json.ts";
import type { UIMessage } from "../message/types.ts";
import { type Difference, firstDifference } from "./request-diff.ts";

/* A tape: the turns of a session as a file of one JSON per line, with all that was asked, said and done. */

/** What came before all else on a tape. */
export interface TapeHead {
  readonly tape: 1;
  /** The agent that it was made of. */
  readonly agent: string;
  readonly session: string;
}

/** A turn begins; `messages`: those of the user that it answers. */
export interface TapeTurn {
  readonly t: "turn";
  readonly turn: number;
  readonly trigger: string;
  readonly messages: readonly UIMessage[];
}

/** A model call, as it was sent. In a file, only what differs from the call before is written. */
export interface TapeCall {
  readonly t: "call";
  readonly turn: number;
  readonly step: number;
  readonly try: number;
  readonly model: string;
  readonly proof: string;
  readonly instructions: unknown;
  readonly tools: Readonly<Record<string, unknown>>;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly messages: readonly ModelMessage[];
}

/** What a tool call was, as a model says it. */
export interface TapeToolCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}

/** What the model said to the call before. */
export interface TapeSaid {
  readonly t: "said";
  readonly turn: number;
  readonly step: number;
  readonly reasoning?: string;
  readonly text?: string;
  readonly toolCalls?: readonly TapeToolCall[];
  readonly usage: { readonly inputTokens?: number; readonly outputTokens?: number };
}

/** How a tool call ended. */
export interface TapeTool extends TapeToolCall {
  readonly t: "tool";
  readonly turn: number;
  readonly output?: unknown;
  readonly error?: string;
}

/** What a person said to a question. */
export interface TapeAnswer {
  readonly t: "answer";
  readonly turn: number;
  readonly toolCallId: string;
  readonly approved: boolean;
}

/** A turn is over. */
export interface TapeEnd {
  readonly t: "end";
  readonly turn: number;
  readonly status: string;
}

/** What a tape has behind its head. */
export type TapeEvent = TapeTurn | TapeCall | TapeSaid | TapeTool | TapeAnswer | TapeEnd;

/** A recorded conversation. */
export interface Tape {
  readonly head: TapeHead;
  readonly events: readonly TapeEvent[];
}

/** A call as it stands in a file. */
interface WrittenCall extends Omit<TapeCall, "messages" | "instructions" | "tools" | "settings"> {
  readonly same: number;
  readonly added: readonly ModelMessage[];
  readonly instructions?: unknown;
  readonly tools?: TapeCall["tools"];
  readonly settings?: TapeCall["settings"];
}

/** Writes calls as what differs from the one before. One for each tape. */
export function tapeWriter(): (event: TapeEvent) => object {
  let before: TapeCall | undefined;
  return (event) => {
    if (event.t !== "call") return event;
    const { messages, instructions, tools, settings, ...rest } = event;
    let same = 0;
    while (before !== undefined && same < messages.length && sameJson(before.messages[same], messages[same])) same++;
    const written: WrittenCall = {
      ...rest,
      ...(!sameJson(before?.instructions, instructions) && { instructions }),
      ...(!sameJson(before?.tools, tools) && { tools }),
      ...(!sameJson(before?.settings, settings) && { settings }),
      ...{ same, added: messages.slice(same) },
    };
    before = event;
    return written;
  };
}

/** Reads a tape. @throws PerdureError `bad_input` for what is none */
export function parseTape(text: string, name = "The tape"): Tape {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const items = lines.map((line, i) => {
    try {
      const item: unknown = JSON.parse(line);
      if (isRecord(item)) return item;
    } catch {
      // Answered below.
    }
    throw new PerdureError("bad_input", `${name} cannot be read: line ${i + 1} is no JSON object.`);
  });
  const [head, ...rest] = items;
  if (head?.["tape"] !== 1)
    throw new PerdureError("bad_input", `${name} is no tape of this version. \`perdure tape\` makes one.`);
  let before: TapeCall | undefined;
  const events = rest.map((item): TapeEvent => {
    if (item["t"] !== "call") return item as unknown as TapeEvent;
    const { same, added, ...call } = item as unknown as WrittenCall;
    const {
      instructions = before?.instructions,
      tools = before?.tools ?? {},
      settings = before?.settings ?? {},
    } = call;
    const messages = [...(before?.messages.slice(0, same) ?? []), ...added];
    return (before = { ...call, instructions, tools, settings, messages });
  });
  return { head: head as unknown as TapeHead, events };
}

/** Where two tapes part. */
export interface TapeDifference extends Difference {
  /** Which event: its kind, turn and step. */
  readonly at: string;
}

/** The first place where two tapes differ, besides whose they are and what calls used; undefined: they are equal. */
export function diffTapes(before: Tape, after: Tape): TapeDifference | undefined {
  const counted = ({ events }: Tape) => events.map(withoutNumbers);
  const [a, b] = [counted(before), counted(after)];
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const found = firstDifference(a[i], b[i]);
    if (found !== undefined) return { at: placeOf(before.events[i] ?? after.events[i]), ...found };
  }
  return undefined;
}

/** In words for a person. */
export function describeDifference({ at, path, before, after }: TapeDifference): string {
  const shown = (value: unknown) => (value === undefined ? "nothing" : JSON.stringify(value).slice(0, SHOWN_CHARS));
  return `${at}${path === "" ? "" : `, ${path}`}: ${shown(before)} became ${shown(after)}`;
}

const SHOWN_CHARS = 200;

/** Ids of messages are new each time, and so is what calls use. */
function withoutNumbers(event: TapeEvent): object {
  if (event.t === "turn") return { ...event, messages: event.messages.map(({ role, parts }) => ({ role, parts })) };
  if (event.t === "said") return { ...event, usage: undefined };
  if (event.t === "call") return { ...event, proof: undefined, model: undefined };
  return event;
}

function placeOf(event: TapeEvent | undefined): string {
  if (event === undefined) return "the end";
  const step = "step" in event ? `, step ${event.step}` : "";
  return `${event.t} of turn ${event.turn}${step}`;
}
