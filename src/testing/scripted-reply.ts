import { newId } from "../base/id.ts";
import type { ModelContent, ModelFinishReason, ModelPrompt, ModelStreamPart, ModelUsage } from "./model-types.ts";

/** A tool that the model asks for. */
export interface ScriptedToolCall {
  readonly toolName: string;
  /** The arguments. A string is sent as it is, which is how a model's broken JSON is played. */
  readonly input: unknown;
  /** A new one for every call by default, as real providers do. */
  readonly toolCallId?: string;
  /** The arguments stream in deltas of so many characters; by default in one. */
  readonly chunkSize?: number;
}

/** A web page that the model refers to. */
export interface ScriptedSource {
  readonly url: string;
  readonly title?: string;
  readonly id?: string;
}

/** A file that the model makes. */
export interface ScriptedFile {
  readonly mediaType: string;
  /** Bytes, or base64 text. */
  readonly data: Uint8Array | string;
}

/** What the provider says that a call cost, in tokens. */
export interface ScriptedUsage {
  readonly inputTokens?: number;
  /** The part of `inputTokens` that came from the provider's cache. */
  readonly cachedInputTokens?: number;
  /** The part of `inputTokens` that was written to the provider's cache. */
  readonly cacheWriteTokens?: number;
  readonly outputTokens?: number;
  /** The part of `outputTokens` that was reasoning. */
  readonly reasoningTokens?: number;
}

/**
 * What the model says in one call. The parts leave in the order reasoning, text, sources, files, tool calls,
 * `content`. A *piece* below is one delta of text, reasoning or arguments, or one whole part of another kind.
 */
export interface ScriptedReply {
  /** One delta, or several. */
  readonly text?: string | readonly string[];
  readonly reasoning?: string | readonly string[];
  readonly toolCalls?: readonly ScriptedToolCall[];
  readonly sources?: readonly ScriptedSource[];
  readonly files?: readonly ScriptedFile[];
  /** Anything else that a model can say, in the AI SDK's own form, in this order. */
  readonly content?: readonly ModelContent[];
  /** By default `tool-calls` if there are calls for us to run, else `stop`. */
  readonly finishReason?: ModelFinishReason;
  /** What is not given is about a quarter of the characters, in or out: the same call always costs the same. */
  readonly usage?: ScriptedUsage;
  /** The call fails with this value: before the stream exists, or later with `errorAfter`. */
  readonly error?: unknown;
  /** How many pieces leave before `error`. `Infinity`: all, and only the end is missing. */
  readonly errorAfter?: number;
  /** How a late error shows: an `error` part (what providers report), or a broken stream (a lost connection). */
  readonly errorAs?: "part" | "cut";
  /** Milliseconds to wait before each piece. */
  readonly delayMs?: number;
  /** Never ends by itself: `true` after all pieces, `"before"` before the stream exists. Ends when aborted. */
  readonly hang?: boolean | "before";
}

/** The stream parts that leave together: a delta, with what must open or close around it. */
type Piece = readonly ModelStreamPart[];

/** The whole answer, as `doGenerate` returns it. */
export function toContent(reply: ScriptedReply): ModelContent[] {
  const content: ModelContent[] = [];
  if (reply.reasoning !== undefined) content.push({ type: "reasoning", text: deltas(reply.reasoning).join("") });
  if (reply.text !== undefined) content.push({ type: "text", text: deltas(reply.text).join("") });
  content.push(...wholeParts(reply).map((part) => part.content));
  return content;
}

/** The same answer, piece by piece, as `doStream` sends it. */
export function toPieces(reply: ScriptedReply): Piece[] {
  const pieces: Piece[] = [];
  if (reply.reasoning !== undefined) pieces.push(...block("reasoning", "reasoning", deltas(reply.reasoning)));
  if (reply.text !== undefined) pieces.push(...block("text", "text", deltas(reply.text)));
  let blocks = 0;
  for (const { content, chunkSize } of wholeParts(reply)) {
    if (content.type === "text" || content.type === "reasoning") {
      pieces.push(...block(content.type, `${content.type}-${blocks++}`, [content.text]));
    } else if (content.type === "tool-call") {
      pieces.push(...toolCallPieces(content, chunkSize));
    } else {
      pieces.push([content]);
    }
  }
  return pieces;
}

export function finishReasonOf(reply: ScriptedReply): ModelFinishReason {
  if (reply.finishReason !== undefined) return reply.finishReason;
  const asksForTools = toContent(reply).some((part) => part.type === "tool-call" && part.providerExecuted !== true);
  return asksForTools ? "tool-calls" : "stop";
}

export function usageOf(reply: ScriptedReply, prompt: ModelPrompt): ModelUsage {
  const given = reply.usage ?? {};
  const input = given.inputTokens ?? tokens(JSON.stringify(prompt));
  const reasoning = given.reasoningTokens ?? tokens(deltas(reply.reasoning ?? "").join(""));
  const output = given.outputTokens ?? tokens(JSON.stringify(toContent({ ...reply, files: [] })));
  const cacheRead = given.cachedInputTokens ?? 0;
  const cacheWrite = given.cacheWriteTokens ?? 0;
  return {
    inputTokens: { total: input, noCache: Math.max(0, input - cacheRead - cacheWrite), cacheRead, cacheWrite },
    outputTokens: { total: output, text: Math.max(0, output - reasoning), reasoning },
  };
}

const CHARACTERS_PER_TOKEN = 4;

function tokens(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}

function deltas(text: string | readonly string[]): readonly string[] {
  return typeof text === "string" ? [text] : text;
}

interface WholePart {
  readonly content: ModelContent;
  readonly chunkSize?: number;
}

function wholeParts(reply: ScriptedReply): WholePart[] {
  const sources = (reply.sources ?? []).map(({ url, title, id }, index): WholePart => ({
    content: { type: "source", sourceType: "url", id: id ?? `source-${index}`, url, title },
  }));
  const files = (reply.files ?? []).map(({ mediaType, data }): WholePart => ({
    content: { type: "file", mediaType, data: { type: "data", data } },
  }));
  const calls = (reply.toolCalls ?? []).map(({ toolName, input, toolCallId, chunkSize }): WholePart => ({
    content: {
      type: "tool-call",
      toolCallId: toolCallId ?? newId("call"),
      toolName,
      input: typeof input === "string" ? input : JSON.stringify(input),
    },
    chunkSize,
  }));
  return [...sources, ...files, ...calls, ...(reply.content ?? []).map((content) => ({ content }))];
}

function block(kind: "text" | "reasoning", id: string, texts: readonly string[]): Piece[] {
  const pieces = texts.map((delta): ModelStreamPart[] => [{ type: `${kind}-delta`, id, delta }]);
  return enclose(pieces, { type: `${kind}-start`, id }, { type: `${kind}-end`, id });
}

function toolCallPieces(call: Extract<ModelContent, { type: "tool-call" }>, chunkSize?: number): Piece[] {
  const { toolCallId: id, toolName, input, providerExecuted, dynamic } = call;
  const size = chunkSize !== undefined && chunkSize > 0 ? chunkSize : Math.max(1, input.length);
  const pieces: ModelStreamPart[][] = [];
  for (let at = 0; at < input.length; at += size) {
    pieces.push([{ type: "tool-input-delta", id, delta: input.slice(at, at + size) }]);
  }
  const start: ModelStreamPart = { type: "tool-input-start", id, toolName, providerExecuted, dynamic };
  return enclose(pieces, start, { type: "tool-input-end", id }, call);
}

function enclose(pieces: ModelStreamPart[][], start: ModelStreamPart, ...end: ModelStreamPart[]): Piece[] {
  if (pieces.length === 0) pieces.push([]);
  pieces[0]?.unshift(start);
  pieces.at(-1)?.push(...end);
  return pieces;
}
