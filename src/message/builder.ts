import { parsePartialJson } from "./partial-json.ts";
import {
  asPart,
  type FinishReason,
  isToolPart,
  type Part,
  type ReasoningUIPart,
  type TextUIPart,
  type ToolPart,
  type UIMessage,
} from "./types.ts";

/** A part of type `data-*`. */
export type DataPart = Extract<Part, { type: `data-${string}` }>;

/** An assistant message under construction, changed only by `applyChunk`. The maps make a chunk's cost independent of length. */
export interface MessageBuilder {
  id: string;
  metadata: unknown;
  finishReason: FinishReason | undefined;
  /** A `start` chunk was applied: the id is known to clients and stays. */
  started: boolean;
  readonly parts: Part[];
  readonly openText: Map<string, TextUIPart>;
  readonly openReasoning: Map<string, ReasoningUIPart>;
  /** The latest part of each call, and where it is. */
  readonly tools: Map<string, { readonly part: ToolPart; readonly index: number }>;
  readonly approvals: Map<string, ToolPart>;
  readonly data: Map<string, DataPart>;
  /** Calls whose input was guessed from its first characters, so that the whole one may still replace it. */
  readonly guessed: Set<ToolPart>;
  /** The parts from here on belong to the current step. */
  stepAt: number;
  /** The parts before this one were there before this stream. */
  readonly inherited: number;
  /** Fields of the continued message that nobody here knows. */
  readonly extra: Readonly<Record<string, unknown>>;
}

/** Starts an empty assistant message. `id` holds until a stream brings its own with its first `start`. */
export function newBuilder(id: string): MessageBuilder {
  return builderFrom({ id, role: "assistant", parts: [] });
}

/** Continues a stored assistant message, which is not changed. */
export function builderFrom({ id, role: _role, metadata, parts, ...extra }: UIMessage): MessageBuilder {
  const builder: MessageBuilder = {
    id,
    metadata,
    finishReason: undefined,
    started: false,
    parts: parts.map((part) => ({ ...part })),
    openText: new Map(),
    openReasoning: new Map(),
    tools: new Map(),
    approvals: new Map(),
    data: new Map(),
    guessed: new Set(),
    stepAt: parts.findLastIndex((part) => part.type === "step-start") + 1,
    inherited: parts.length,
    extra,
  };
  builder.parts.forEach((part, index) => indexPart(builder, part, index));
  return builder;
}

/** The message as it is now. Later chunks do not change what was returned. */
export function toMessage(builder: MessageBuilder): UIMessage {
  const message: UIMessage = { ...builder.extra, id: builder.id, role: "assistant", parts: [] };
  if (builder.metadata !== undefined) message.metadata = builder.metadata;
  message.parts = builder.parts.map(snapshot);
  return message;
}

/** The latest part of a call, if this message has it. */
export function findTool(builder: MessageBuilder, toolCallId: string): ToolPart | undefined {
  return builder.tools.get(toolCallId)?.part;
}

/** Puts `part` in the place of the latest part of the same call; does nothing when there is none. */
export function replaceTool(builder: MessageBuilder, part: ToolPart): void {
  const slot = builder.tools.get(part.toolCallId);
  if (slot === undefined) return;
  builder.guessed.delete(slot.part);
  builder.parts[slot.index] = asPart(part);
  indexPart(builder, asPart(part), slot.index);
}

/** Puts a part of another kind in the place of a call, whose id stays taken. @returns where; undefined: no such call */
export function standIn(builder: MessageBuilder, toolCallId: string, part: Part): number | undefined {
  const slot = builder.tools.get(toolCallId);
  if (slot === undefined) return undefined;
  builder.guessed.delete(slot.part);
  builder.parts[slot.index] = part;
  return slot.index;
}

/** The input of a call that is still being streamed, as far as it can be read. */
export function streamedInput(part: ToolPart): unknown {
  if (typeof part.rawInput !== "string") return part.input;
  return part.inputEncoding === "text" ? part.rawInput : parsePartialJson(part.rawInput);
}

/** Where a data part with an id is kept in {@link MessageBuilder.data}. */
export function dataKey(type: string, id: string): string {
  return `${type}\n${id}`;
}

/** Adds a part at the end and makes it findable. */
export function pushPart(builder: MessageBuilder, part: Part): void {
  indexPart(builder, part, builder.parts.push(part) - 1);
}

/** Removes the parts from `length` on. Open texts are forgotten: their parts may be among them. */
export function truncateParts(builder: MessageBuilder, length: number): void {
  builder.parts.length = length;
  for (const map of [builder.openText, builder.openReasoning, builder.tools, builder.approvals, builder.data])
    map.clear();
  builder.guessed.clear();
  builder.parts.forEach((part, at) => indexPart(builder, part, at));
}

function indexPart(builder: MessageBuilder, part: Part, index: number): void {
  if (isToolPart(part)) {
    builder.tools.set(part.toolCallId, { part, index });
    if (part.approval !== undefined) builder.approvals.set(part.approval.id, part);
  } else if (isDataPart(part) && part.id !== undefined) {
    const key = dataKey(part.type, part.id);
    if (!builder.data.has(key)) builder.data.set(key, part);
  }
}

function isDataPart(part: Part): part is DataPart {
  return part.type.startsWith("data-");
}

function snapshot(part: Part): Part {
  if (isToolPart(part) && part.state === "input-streaming") return { ...part, input: streamedInput(part) } as Part;
  return { ...part };
}
