import type { StreamChunk } from "@tanstack/ai";
import type { ChunkContract, ChunkRecord } from "../contract.ts";
import { rowsOf } from "../rows.ts";
import { chunkSink } from "./chunk-sink.ts";
import type { ChunkSinkOptions, TransformOption } from "./chunk-sink.ts";
import { readStream } from "./read-stream.ts";
import type { CollectStreamOptions, StreamResult } from "./read-stream.ts";

/** How a stream is read and stored. */
export interface StreamToCollectionOptions<TRow extends ChunkContract>
  extends CollectStreamOptions, ChunkSinkOptions<TRow> {}

/**
 * Reads a stream of `chat()` and stores its events as rows, numbered 0, 1, 2, … in the order in which they came.
 * Rows are appended and awaited, never optimistic; what came while a write was under way goes into the next one.
 * The last chunk of a complete answer has `isFinal`, and no other.
 *
 * @returns what it has come to. Only `outcome: "completed"` is an answer.
 * @throws GenerationError with what was stored so far: `cancelled` when the signal was aborted, however the stream
 *   then ended; `model_failed` when the model's server reported an error or the stream ended before the answer did;
 *   `fenced` when a write was refused, because somebody else has this answer.
 */
export async function streamToCollection<TRow extends ChunkContract = ChunkRecord>(
  stream: AsyncIterable<StreamChunk>,
  options: StreamToCollectionOptions<TRow> & TransformOption<TRow>,
): Promise<StreamResult> {
  // Before the model is called: what its chunks depend on must be here to be judged.
  await rowsOf(options.collection).ready();
  return readStream(stream, options, chunkSink(options));
}

/**
 * Reads a stream of `chat()` to its end and stores nothing; otherwise as {@link streamToCollection}: an answer that
 * was aborted, cut off or interrupted is never given as if it were one, as `chat({ stream: false })` does.
 */
export function collectStream(
  stream: AsyncIterable<StreamChunk>,
  options: CollectStreamOptions = {},
): Promise<StreamResult> {
  const nowhere = async () => {};
  return readStream(stream, options, { take: nowhere, close: nowhere, counts: () => ({ chunks: 0, nextIndex: 0 }) });
}
