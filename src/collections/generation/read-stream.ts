import type { StreamChunk, TokenUsage } from "@tanstack/ai";
import { errorText, PerdureError } from "../../base/error.ts";
import { GenerationError } from "./error.ts";
import { StreamTally } from "./tally.ts";
import type { StreamEnd } from "./tally.ts";

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
    for await (const chunk of untilAborted(stream, signal)) {
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
  return {
    ...end,
    content,
    lastText,
    ...sink.counts(),
    ...(usage === undefined ? {} : { usage }),
    ...(object === undefined ? {} : { object }),
  };

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
async function* untilAborted(stream: AsyncIterable<StreamChunk>, signal: AbortSignal | undefined) {
  signal?.throwIfAborted();
  const iterator = stream[Symbol.asyncIterator]();
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal?.reason as Error);
    signal?.addEventListener("abort", stop, { once: true });
  });
  aborted.catch(() => {});
  let over = false;
  try {
    for (;;) {
      const next = iterator.next();
      // Nobody listens to it any more when the abort comes first.
      next.catch(() => {});
      const { done, value } = await Promise.race([next, aborted]);
      if (done === true) {
        over = true;
        return;
      }
      yield value;
    }
  } catch (error) {
    over = signal?.aborted !== true;
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
    // Not awaited: a tool that does not listen to the abort may keep the stream busy for long.
    if (!over) iterator.return?.().catch(() => {});
  }
}
