import type { StreamChunk } from "@tanstack/ai";
import type { ChunkContract, ChunkRecord } from "../contract.ts";
import type { RowProducer } from "../log/row-log.ts";
import { keyOf, rowsOf } from "../rows.ts";
import type { RowCollection } from "../rows.ts";
import { toChunkRecord } from "./chunk.ts";
import { ChunkWriter } from "./chunk-writer.ts";
import type { ChunkBatch, Conditions } from "./chunk-writer.ts";
import type { Sink } from "./read-stream.ts";

/** Where and how chunks are stored. */
export interface ChunkSinkOptions<TRow extends ChunkContract> {
  readonly collection: RowCollection<TRow>;
  /** Names this try at the answer. A second try needs another, or its chunks are refused. */
  readonly generationId: string;
  /** Which events are stored. May not throw. Default: all. */
  readonly filter?: (chunk: StreamChunk) => boolean;
  /** The index of the first chunk. Default 0; `nextIndex` of the part before, for an answer that goes on. */
  readonly startIndex?: number;
  readonly batch?: ChunkBatch;
  /** What must hold at each write: a claim, for instance. Of the log of `collection`. */
  readonly when?: Conditions;
  readonly producer?: RowProducer;
}

/** An event as a row. Undefined: not stored. What it throws ends the reading. */
export type ChunkTransform<TRow> = (chunk: StreamChunk, index: number, generationId: string) => TRow | undefined;

/** Collections of {@link ChunkRecord} need no transform. */
export type TransformOption<TRow> = ChunkRecord extends TRow
  ? { readonly transform?: ChunkTransform<TRow> }
  : { readonly transform: ChunkTransform<TRow> };

/** A sink that stores chunks. */
export interface ChunkSink extends Sink {
  /** Resolves when everything that was taken is stored, but for an end of a turn that may be the end of all. */
  flush(): Promise<void>;
}

/** Stores events as chunks; see `streamToCollection`. */
export function chunkSink<TRow extends ChunkContract>(
  options: ChunkSinkOptions<TRow> & { readonly transform?: ChunkTransform<TRow> },
): ChunkSink {
  const { collection, generationId, filter, startIndex = 0 } = options;
  // Without a transform the rows are ChunkRecords: TransformOption asks for one otherwise.
  const transform = options.transform ?? (toChunkRecord as unknown as ChunkTransform<TRow>);
  const { when, producer, batch } = options;
  const rows = rowsOf(collection);
  const writer = new ChunkWriter<TRow>({ rows, keyOf: (row) => keyOf(collection, row), when, producer, batch });
  let index = startIndex;
  // The end of a turn is held back until it is known whether it is the end of the answer.
  let held: TRow | undefined;
  const release = async (isFinal: boolean) => {
    const row = held;
    held = undefined;
    if (row !== undefined) await writer.add(isFinal ? { ...row, isFinal } : row);
  };
  return {
    take: async (chunk) => {
      await release(false);
      if (filter?.(chunk) === false) return;
      const row = transform(chunk, index, generationId);
      if (row === undefined) return;
      index++;
      if (chunk.type === "RUN_FINISHED") held = row;
      else await writer.add(row);
    },
    close: async (completed) => {
      await release(completed);
      if (completed) await writer.finish();
      else await writer.flush();
    },
    flush: () => writer.flush(),
    counts: () => ({ chunks: writer.written, nextIndex: startIndex + writer.written }),
  };
}
