import { fromSpecTokenUsage, type Interrupt, type StreamChunk, type TokenUsage } from "@tanstack/ai";
import { untilAborted } from "../../base/abort.ts";
import { PerdureError, errorText, type PerdureErrorCode } from "../../base/error.ts";

/** What there was of an answer that did not come to its end. */
interface PartialAnswer {
  /** The text so far. It is no answer. */
  readonly content: string;
  /** How many chunks were stored. */
  readonly chunks: number;
}

/**
 * An answer that did not finish. `code`: `cancelled` (its signal aborted), `model_failed` (the provider reported an error or was
 * cut off; see `cause`) or `fenced` (somebody else has the work now).
 */
export class GenerationError extends PerdureError {
  /** What was stored of it before. */
  readonly partial: PartialAnswer;

  constructor(code: PerdureErrorCode, message: string, partial: PartialAnswer, options?: { cause?: unknown }) {
    super(code, message, options);
    this.partial = partial;
  }
}

/** How a stream of `chat()` ended. */
interface StreamEnd {
  /**
   * `completed`: the model is done. `interrupted`: it waits for approvals or tools that run elsewhere (`interrupts`), or the
   * agent loop hit its limit while the model still called tools (no interrupts).
   */
  readonly outcome: "completed" | "interrupted";
  /** As the model's server gave it with the last turn: `stop`, `length`, `content_filter`, `tool_calls`. */
  readonly finishReason: string | null;
  readonly interrupts: readonly Interrupt[];
}

/** Reads along a stream of `chat()`, and knows at each moment what it has come to. */
class StreamTally {
  /** The text of all turns of the model. */
  content = "";
  /** The text of its last turn. */
  lastText = "";
  /** What all its turns have used, if it was told. */
  usage: TokenUsage | undefined;
  /** The object of a structured answer. */
  object: unknown;
  /** Why the model's server gave up. */
  failure: string | undefined;
  #finished: Extract<StreamChunk, { type: "RUN_FINISHED" }> | undefined;

  add(chunk: StreamChunk): void {
    switch (chunk.type) {
      case "RUN_FINISHED":
        this.#finished = chunk;
        this.#addUsage(chunk.usage);
        return;
      case "RUN_ERROR":
        this.failure = chunk.message || chunk.error?.message || "no reason was given";
        return;
      case "TEXT_MESSAGE_CONTENT":
        this.#beginTurn();
        this.content += chunk.delta;
        this.lastText += chunk.delta;
        return;
      case "REASONING_START":
      case "TEXT_MESSAGE_START":
      case "TOOL_CALL_START":
        this.#beginTurn();
        return;
      case "CUSTOM":
        if (chunk.name === "structured-output.complete") this.object = objectOf(chunk.value);
        return;
      default:
        return;
    }
  }

  /** How the stream has ended, or undefined if it broke off: it is over only when its last turn says so. */
  end(): StreamEnd | undefined {
    if (this.#finished === undefined) return undefined;
    const finishReason = this.#finished.finishReason ?? this.#finished.metadata?.tanstack?.finishReason ?? null;
    const interrupts = this.#finished.outcome?.type === "interrupt" ? this.#finished.outcome.interrupts : [];
    const outcome = interrupts.length > 0 || finishReason === "tool_calls" ? "interrupted" : "completed";
    return { outcome, finishReason, interrupts };
  }

  /** The end of the turn before is not the end of the stream. */
  #beginTurn(): void {
    if (this.#finished === undefined) return;
    this.#finished = undefined;
    this.lastText = "";
  }

  #addUsage(usage: Extract<StreamChunk, { type: "RUN_FINISHED" }>["usage"]): void {
    const more = Array.isArray(usage) ? fromSpecTokenUsage(usage) : usage;
    if (more === undefined) return;
    const { promptTokens = 0, completionTokens = 0, totalTokens = 0 } = this.usage ?? {};
    this.usage = {
      promptTokens: promptTokens + more.promptTokens,
      completionTokens: completionTokens + more.completionTokens,
      totalTokens: totalTokens + more.totalTokens,
    };
  }
}

function objectOf(value: unknown): unknown {
  return typeof value === "object" && value !== null && "object" in value ? value.object : undefined;
}

/** What a stream has come to. */
export interface StreamResult extends StreamEnd {
  /** The text of all turns of the model, as `chat({ stream: false })` gives it. An answer only if `completed`. */
  readonly content: string;
  /** The text of the model's last turn: without what it said before it called tools. */
  readonly lastText: string;
  /** How many chunks were stored. */
  readonly chunks: number;
  /** The index of the next chunk, for a stream that goes on with the same answer. */
  readonly nextIndex: number;
  /** The tokens of all turns, if the model's server tells. */
  readonly usage?: TokenUsage;
  /** Of `chat({ outputSchema, stream: true })`: the object. */
  readonly object?: unknown;
}

/** How a stream is read. */
export interface CollectStreamOptions {
  /** Ends the reading with a GenerationError `cancelled`. Give `chat()` an abort controller of its own. */
  readonly signal?: AbortSignal;
  /** Called with each event before it is stored. What it throws ends the reading; it must be quick. */
  readonly onChunk?: (chunk: StreamChunk) => void;
}

/** Where the events of a stream go. */
export interface Sink {
  take(chunk: StreamChunk): Promise<void>;
  /** The stream is over; `completed`: what it was is an answer. */
  close(completed: boolean): Promise<void>;
  counts(): { chunks: number; nextIndex: number };
}

/** Reads a stream into a sink, and says what it has come to. See `streamToCollection` for what it throws. */
export async function readStream(
  stream: AsyncIterable<StreamChunk>,
  { signal, onChunk }: CollectStreamOptions,
  sink: Sink,
): Promise<StreamResult> {
  const tally = new StreamTally();
  const partial = () => ({ content: tally.content, chunks: sink.counts().chunks });
  const cancelled = () =>
    new GenerationError("cancelled", "The answer was cancelled before it was complete.", partial(), {
      cause: signal?.reason,
    });
  try {
    for await (const chunk of chunksOf(stream, signal)) {
      tally.add(chunk);
      onChunk?.(chunk);
      await sink.take(chunk);
    }
  } catch (thrown) {
    // What came before is kept; that it cannot be stored as well is no news.
    await sink.close(false).catch(() => {});
    if (signal?.aborted === true) throw cancelled();
    if (PerdureError.is(thrown, "fenced"))
      throw new GenerationError("fenced", thrown.message, partial(), { cause: thrown });
    if (PerdureError.is(thrown)) throw thrown;
    throw failed(errorText(thrown), thrown);
  }
  const aborted = signal?.aborted === true;
  const end = tally.end();
  const good = !aborted && tally.failure === undefined && end !== undefined;
  await close(good && end.outcome === "completed");
  // Asked again: it may have been aborted while the last chunks were stored.
  if (signal?.aborted === true && !(good && end.outcome === "completed")) throw cancelled();
  if (tally.failure !== undefined) throw failed(tally.failure);
  if (end === undefined) throw failed("its stream ended before the answer was complete");
  const { content, lastText, usage, object } = tally;
  return { ...end, content, lastText, ...sink.counts(), usage, object };

  async function close(completed: boolean): Promise<void> {
    try {
      await sink.close(completed);
    } catch (thrown) {
      if (signal?.aborted === true) throw cancelled();
      if (!PerdureError.is(thrown, "fenced")) throw thrown;
      throw new GenerationError("fenced", thrown.message, partial(), { cause: thrown });
    }
  }

  function failed(why: string, cause?: unknown): GenerationError {
    return new GenerationError("model_failed", `The model failed: ${why}.`, partial(), { cause });
  }
}

/** The chunks of a stream until the signal aborts: then it throws at once, also when the stream does not stop. */
async function* chunksOf(stream: AsyncIterable<StreamChunk>, signal: AbortSignal | undefined) {
  signal?.throwIfAborted();
  const iterator = stream[Symbol.asyncIterator]();
  let over = false;
  try {
    for (;;) {
      const { done, value } = await untilAborted(iterator.next(), signal);
      over = done === true;
      if (over) return;
      yield value as StreamChunk;
    }
  } catch (error) {
    over = signal?.aborted !== true;
    throw error;
  } finally {
    // Not awaited: a tool that does not listen to the abort may keep the stream busy for long.
    if (!over) iterator.return?.().catch(() => {});
  }
}
