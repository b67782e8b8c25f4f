import { errorText, PerdureError } from "../../base/error.ts";
import { textChunker } from "../../message/chunk-from-text.ts";
import { parseChunk } from "../../message/parse-chunk.ts";
import type { UIMessageChunk } from "../../message/types.ts";
import { isResponse } from "../../wire/fetch-object.ts";
import { readEvents } from "../../wire/event-stream.ts";
import { tryParseJson } from "../../base/json.ts";

/** What `streamText` of the AI SDK returns, as far as it is used here. */
export interface StreamedAnswer {
  toUIMessageStream(options?: {
    onError?: (error: unknown) => string;
  }): ReadableStream<UIMessageChunk> | AsyncIterable<UIMessageChunk>;
}

/** An answer: a Response (UI message stream or plain text), what `streamText` returns, or the chunks. */
export type ChatAnswer = Response | StreamedAnswer | ReadableStream<UIMessageChunk> | AsyncIterable<UIMessageChunk>;

const ordinary: unique symbol = Symbol("perdure.ordinary-turn");

/** What `super.onChatMessage(…)` of a `Think` returns: the turn is to run step by step, as it does by itself. */
export interface OrdinaryTurn {
  /** @internal */
  readonly [ordinary]: true;
}

/** The only one there is. */
export const ORDINARY_TURN: OrdinaryTurn = { [ordinary]: true };

/** A chunk, and its JSON where that is known already. */
export interface SourceChunk {
  readonly chunk: UIMessageChunk;
  readonly json?: string;
}

/**
 * The chunks of an answer. Ends early when `signal` aborts, even if the producer ignores it. Skips malformed chunks.
 * @throws what the producer throws; PerdureError `bad_input` for an HTTP error, `bad_config` for an answer that cannot be read.
 */
export async function* readAnswer(
  answer: ChatAnswer,
  requestId: string,
  signal: AbortSignal,
): AsyncGenerator<SourceChunk> {
  if (!isResponse(answer)) {
    for await (const value of untilAborted(chunksOf(answer), signal)) {
      const chunk = parseChunk(value, true);
      if (chunk !== undefined) yield { chunk };
    }
    return;
  }
  if (!answer.ok) throw new PerdureError("bad_input", await errorOf(answer));
  if (answer.body === null) return;
  const bytes = untilAborted(answer.body, signal);
  if ((answer.headers.get("content-type") ?? "").includes("text/event-stream")) {
    // `END_OF_STREAM` is no JSON, and is passed over as such.
    for await (const { data: json } of readEvents(bytes, true)) {
      const chunk = parseChunk(tryParseJson(json), true);
      // The log holds a chunk per line; JSON that was sent over several lines is written anew.
      if (chunk !== undefined) yield json.includes("\n") ? { chunk } : { chunk, json };
    }
    return;
  }
  const chunker = textChunker(requestId);
  for await (const piece of bytes) for (const chunk of chunker.push(piece)) yield { chunk };
  // A text that was cut is not at its end: it would pass for a whole answer.
  if (signal.aborted) return;
  for (const chunk of chunker.end()) yield { chunk };
}

/** @throws PerdureError `bad_config` */
function chunksOf(
  answer: Exclude<ChatAnswer, Response>,
): ReadableStream<UIMessageChunk> | AsyncIterable<UIMessageChunk> {
  const given: unknown = answer;
  if (typeof given === "object" && given !== null) {
    // First: a result of `streamText` is read through what it offers for it.
    if ("toUIMessageStream" in answer && typeof answer.toUIMessageStream === "function")
      return answer.toUIMessageStream({ onError: errorText });
    if ("getReader" in answer || Symbol.asyncIterator in answer) return answer;
  }
  throw new PerdureError(
    "bad_config",
    "onChatMessage() returned no answer: return a Response, what streamText() returns, a stream of UI message chunks, or " +
      `nothing; in a Think also what super.onChatMessage() returns. It was ${describe(given)}.`,
  );
}

function describe(value: unknown): string {
  if (typeof value === "string") return "a text, which is `new Response(text)`";
  if (typeof value !== "object" || value === null) return value === null ? "null" : `a ${typeof value}`;
  const keys = Object.keys(value).slice(0, 3);
  const what = value.constructor?.name ?? "Object";
  return keys.length === 0 ? `an object (${what})` : `an object (${what}) with ${keys.join(", ")}`;
}

/** Reads until the end or the abort, whichever is first. */
async function* untilAborted<T>(source: ReadableStream<T> | AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const reader = "getReader" in source ? source.getReader() : undefined;
  if (reader === undefined) {
    yield* iterateUntilAborted((source as AsyncIterable<T>)[Symbol.asyncIterator](), signal);
    return;
  }
  // Cancelling ends a read that is waiting, which an abort alone would not.
  const stop = () => void reader.cancel(signal.reason).catch(() => {});
  signal.addEventListener("abort", stop, { once: true });
  try {
    for (;;) {
      if (signal.aborted) return stop();
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    signal.removeEventListener("abort", stop);
    void reader.cancel().catch(() => {});
  }
}

async function* iterateUntilAborted<T>(iterator: AsyncIterator<T>, signal: AbortSignal): AsyncGenerator<T> {
  const { promise: aborted, resolve } = Promise.withResolvers<undefined>();
  const stop = () => resolve(undefined);
  signal.addEventListener("abort", stop, { once: true });
  try {
    while (!signal.aborted) {
      const result = await Promise.race([iterator.next(), aborted]);
      if (result === undefined || result.done === true) return;
      yield result.value;
    }
  } finally {
    signal.removeEventListener("abort", stop);
    void iterator.return?.()?.catch(() => {});
  }
}

async function errorOf(answer: Response): Promise<string> {
  const text = (await answer.text()).slice(0, 500);
  return text === "" ? `The answer was a response with status ${answer.status}.` : text;
}
