import type { DefaultMessageMetadataByModality, ModelMessage, TextAdapter, TokenUsage } from "@tanstack/ai";
import { untilAborted } from "../base/abort.ts";
import { PerdureError } from "../base/error.ts";
import { newId } from "../base/id.ts";
import { sleep, systemClock } from "../base/time.ts";

/** A piece of a scripted answer: a text is sent, a promise awaited, a function called and awaited, to act between pieces. */
export type TextPiece = string | Promise<unknown> | (() => unknown);

/** A tool call of a scripted model. */
export interface TextToolCall {
  readonly name: string;
  /** What the tool is given: sent as JSON. A string is sent as it is, also when it is no JSON. Default `{}`. */
  readonly input?: unknown;
  /** A new one by default. */
  readonly id?: string;
}

/** What the model does in one call: it thinks, speaks, calls tools, and ends. */
export interface TextTurn {
  readonly reasoning?: string | readonly TextPiece[];
  readonly text?: string | readonly TextPiece[];
  readonly toolCalls?: readonly TextToolCall[];
  /** Wait before each piece, in real time. Default: none. */
  readonly delayMs?: number;
  /** Default: `tool_calls` if there are some, else `stop`. */
  readonly finishReason?: "stop" | "length" | "content_filter" | "tool_calls";
  /** `{ promptTokens, completionTokens }`, or more of it. */
  readonly usage?: Pick<TokenUsage, "promptTokens" | "completionTokens"> & Partial<TokenUsage>;
  /** The model's server reports a failure (`RUN_ERROR`), after what comes before it. */
  readonly error?: string;
  /** The connection breaks: the stream throws this, after what comes before it. */
  readonly throws?: Error;
  /** The stream just ends after what comes before, without saying that it is over. */
  readonly cut?: boolean;
  /** The object that a call for structured output gets. */
  readonly structured?: unknown;
}

/** What a scripted model was asked. */
export interface TextCall {
  /** Which call of this adapter it is, from 0. */
  readonly index: number;
  readonly messages: readonly ModelMessage[];
  readonly systemPrompts: readonly string[];
  /** The names of the tools that it was offered. */
  readonly tools: readonly string[];
  /** The text of the last user message. */
  readonly userText: string;
  /** How many messages follow the last user message: 0 for the first call of an answer. */
  readonly step: number;
  /** Whether an object is asked for, and not a stream. */
  readonly structured: boolean;
  /** How it went. A stream that nobody reads to its end is `aborted`. */
  readonly status: "running" | "finished" | "failed" | "aborted";
}

/** The turns in order, or a function of the call. What the function throws is what the call fails with. */
export type TextScript =
  | readonly (string | TextTurn)[]
  | ((call: TextCall) => string | TextTurn | Promise<string | TextTurn>);

/** How a {@link scriptedText} model behaves. */
export interface ScriptedTextOptions {
  readonly name?: string;
  /** What an abort does to a stream: `end` (default) stops it, `throw` throws the reason, `error` reports a `RUN_ERROR`. */
  readonly onAbort?: "end" | "throw" | "error";
}

/** A text adapter of TanStack AI that plays a script and keeps a record. */
export interface ScriptedText extends TextAdapter<
  "scripted",
  Record<string, unknown>,
  readonly ["text"],
  DefaultMessageMetadataByModality
> {
  /** All calls so far, oldest first. */
  readonly calls: readonly TextCall[];
}

type AdapterChunk = ReturnType<ScriptedText["chatStream"]> extends AsyncIterable<infer Chunk> ? Chunk : never;
type CallOptions = Parameters<ScriptedText["chatStream"]>[0];
type MutableCall = { -readonly [Field in keyof TextCall]: TextCall[Field] };

/** A model for TanStack AI's `chat()` in tests, every call recorded. Beyond its list it fails with PerdureError `bad_state`. */
export function scriptedText(script: TextScript, options: ScriptedTextOptions = {}): ScriptedText {
  const calls: MutableCall[] = [];
  const { name = "scripted", onAbort = "end" } = options;

  function record(request: CallOptions, structured: boolean): MutableCall {
    const call = describeCall(calls.length, request, structured);
    calls.push(call);
    return call;
  }

  return {
    kind: "text",
    name,
    model: "scripted",
    // Only types live here, by TanStack AI's own rule.
    "~types": {} as ScriptedText["~types"],
    calls,
    async *chatStream(request) {
      const call = record(request, false);
      const signal = signalOf(request);
      try {
        const turn = await ask(script, call);
        yield* play(turn, request, signal);
        call.status = turn.error === undefined ? "finished" : "failed";
      } catch (error) {
        call.status = signal?.aborted === true ? "aborted" : "failed";
        if (call.status === "failed" || onAbort === "throw") throw error;
        if (onAbort === "error") yield chunk("RUN_ERROR", { message: "The request was aborted.", code: "aborted" });
      } finally {
        if (call.status === "running") call.status = "aborted";
      }
    },
    async structuredOutput({ chatOptions }) {
      const call = record(chatOptions, true);
      try {
        const turn = await ask(script, call);
        await settle(turn, signalOf(chatOptions));
        call.status = "finished";
        const usage = turn.usage === undefined ? {} : { usage: wholeUsage(turn.usage) };
        return { data: turn.structured, rawText: JSON.stringify(turn.structured) ?? "", ...usage };
      } catch (error) {
        call.status = signalOf(chatOptions)?.aborted === true ? "aborted" : "failed";
        throw error;
      }
    },
  };
}

async function ask(script: TextScript, call: TextCall): Promise<TextTurn> {
  const turn = typeof script === "function" ? await script(call) : script[call.index];
  if (turn === undefined) {
    throw new PerdureError("bad_state", `The script has no turn ${call.index}: the model was called too often.`);
  }
  return typeof turn === "string" ? { text: turn } : turn;
}

/** The events of a turn, in the order in which providers send them. */
async function* play(turn: TextTurn, request: CallOptions, signal: AbortSignal | undefined) {
  const run = { runId: request.runId ?? newId("run"), threadId: request.threadId ?? newId("thread") };
  const messageId = newId("msg");
  yield chunk("RUN_STARTED", run);
  if (turn.reasoning !== undefined) {
    yield chunk("REASONING_START", { messageId });
    yield chunk("REASONING_MESSAGE_START", { messageId, role: "reasoning" });
    for await (const delta of speak(turn.reasoning, turn, signal)) {
      yield chunk("REASONING_MESSAGE_CONTENT", { messageId, delta });
    }
    yield chunk("REASONING_MESSAGE_END", { messageId });
    yield chunk("REASONING_END", { messageId });
  }
  if (turn.text !== undefined) {
    yield chunk("TEXT_MESSAGE_START", { messageId, role: "assistant" });
    for await (const delta of speak(turn.text, turn, signal)) yield chunk("TEXT_MESSAGE_CONTENT", { messageId, delta });
    if (turn.error === undefined && turn.throws === undefined && turn.cut !== true) {
      yield chunk("TEXT_MESSAGE_END", { messageId });
    }
  }
  for (const call of turn.toolCalls ?? []) yield* callTool(call, turn, messageId, signal);
  signal?.throwIfAborted();
  if (turn.throws !== undefined) throw turn.throws;
  if (turn.cut === true) return;
  if (turn.error !== undefined) {
    yield chunk("RUN_ERROR", { message: turn.error });
    return;
  }
  const finishReason = turn.finishReason ?? ((turn.toolCalls?.length ?? 0) > 0 ? "tool_calls" : "stop");
  const usage = turn.usage === undefined ? {} : { usage: wholeUsage(turn.usage) };
  yield chunk("RUN_FINISHED", { ...run, model: "scripted", finishReason, ...usage });
}

async function* callTool(call: TextToolCall, turn: TextTurn, messageId: string, signal: AbortSignal | undefined) {
  const toolCallId = call.id ?? newId("call");
  const delta = typeof call.input === "string" ? call.input : JSON.stringify(call.input ?? {});
  yield chunk("TOOL_CALL_START", { toolCallId, toolCallName: call.name, parentMessageId: messageId });
  for await (const piece of speak([delta], turn, signal)) yield chunk("TOOL_CALL_ARGS", { toolCallId, delta: piece });
  yield chunk("TOOL_CALL_END", { toolCallId });
}

/** The texts of `pieces`, each in its time. Throws the signal's reason as soon as it aborts. */
async function* speak(pieces: string | readonly TextPiece[], turn: TextTurn, signal: AbortSignal | undefined) {
  for (const piece of typeof pieces === "string" ? [pieces] : pieces) {
    signal?.throwIfAborted();
    if (turn.delayMs !== undefined) await sleep(systemClock, turn.delayMs, signal);
    if (typeof piece === "string") yield piece;
    else await untilAborted(Promise.resolve(typeof piece === "function" ? piece() : piece), signal);
  }
  signal?.throwIfAborted();
}

/** Everything of a turn that takes time or fails, for a call that gets it in one piece. */
async function settle(turn: TextTurn, signal: AbortSignal | undefined): Promise<void> {
  for (const pieces of [turn.reasoning ?? [], turn.text ?? []]) {
    for await (const piece of speak(pieces, turn, signal)) void piece;
  }
  if (turn.throws !== undefined) throw turn.throws;
  if (turn.error !== undefined) throw new Error(turn.error);
}

function describeCall(index: number, request: CallOptions, structured: boolean): MutableCall {
  const { messages } = request;
  const last = messages.findLastIndex((message) => message.role === "user");
  return {
    index,
    // A copy: the caller goes on with the same list.
    messages: [...messages],
    systemPrompts: (request.systemPrompts ?? []).map((one) => (typeof one === "string" ? one : one.content)),
    tools: (request.tools ?? []).map((tool) => tool.name),
    userText: textOf(messages[last]?.content),
    step: messages.length - 1 - last,
    structured,
    status: "running",
  };
}

function textOf(content: ModelMessage["content"] | undefined): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => (part.type === "text" ? part.content : "")).join("");
}

/** `chat()` hands its signal on inside `request`. */
function signalOf({ abortController, request }: CallOptions): AbortSignal | undefined {
  return abortController?.signal ?? request?.signal ?? undefined;
}

function wholeUsage(usage: NonNullable<TextTurn["usage"]>): TokenUsage {
  return { totalTokens: usage.promptTokens + usage.completionTokens, ...usage };
}

/** An event, typed as text: loading the enum of event types would need TanStack AI, which may not be installed. */
function chunk(type: string, fields: object): AdapterChunk {
  return { type, timestamp: Date.now(), ...fields } as unknown as AdapterChunk;
}
