import type { StreamChunk } from "@tanstack/ai";
import { PerdureError } from "../../base/error.ts";
import type { ChunkContract, ChunkRecord } from "../contract.ts";
import type { RowCondition, RowProducer } from "../../wire/row-frames.ts";
import { keyOf, rowsOf, type RowCollection, type RowOptions, type Rows } from "../log/rows.ts";
import { pause } from "../../base/time.ts";
import { toChunkRecord } from "./chunk.ts";
import { readStream, type CollectStreamOptions, type Sink, type StreamResult } from "./read-stream.ts";

/** Conditions of a write, or how to find them at the moment of each write. May throw: then nothing is written. */
export type Conditions = readonly RowCondition[] | (() => readonly RowCondition[]);

/** How chunks are gathered into writes. */
export interface ChunkBatch {
  /** The most chunks that go into one write. Default 256. */
  readonly maxChunks?: number;
  /** Wait this long before each write that is not full: fewer writes, and readers see text that much later. Default 0. */
  readonly waitMs?: number;
}

interface ChunkWriterOptions<TRow extends ChunkContract> {
  readonly rows: Rows<TRow>;
  readonly keyOf: (row: TRow) => string;
  readonly when: Conditions | undefined;
  readonly producer: RowProducer | undefined;
  readonly batch: ChunkBatch | undefined;
}

const MAX_CHUNKS = 256;
/** How many chunks may wait before the model is made to wait too. */
const MAX_WAITING = 4 * MAX_CHUNKS;

/**
 * Writes an answer's chunks in order, one write at a time; chunks that arrive meanwhile share the next write. A failed write is
 * final: nothing is written behind it, so there is never a gap.
 */
export class ChunkWriter<TRow extends ChunkContract> {
  /** How many are stored. */
  written = 0;
  readonly #options: ChunkWriterOptions<TRow>;
  #waiting: TRow[] = [];
  #last: TRow | undefined;
  #draining: Promise<void> | undefined;
  #failed: { readonly error: unknown } | undefined;

  constructor(options: ChunkWriterOptions<TRow>) {
    this.#options = options;
  }

  /** Takes a chunk. Resolves at once, unless too many wait. Throws what a write before has failed with. */
  async add(row: TRow): Promise<void> {
    this.#check();
    this.#waiting.push(row);
    this.#draining ??= this.#drain();
    while (this.#waiting.length >= MAX_WAITING && this.#failed === undefined) await this.#draining;
    this.#check();
  }

  /** Resolves when all chunks are stored. Throws what a write has failed with. */
  async flush(): Promise<void> {
    while (this.#draining !== undefined) await this.#draining;
    this.#check();
  }

  /** Marks the last stored chunk as the end of a complete answer, where no chunk that came later could say it. */
  async finish(): Promise<void> {
    await this.flush();
    const last = this.#last;
    if (last === undefined || last.isFinal === true) return;
    const { rows, keyOf } = this.#options;
    const write = () => rows.update(keyOf(last), (draft) => void (draft.isFinal = true), this.#fence());
    await this.#insist(write);
  }

  #check(): void {
    if (this.#failed !== undefined) throw this.#failed.error;
  }

  async #drain(): Promise<void> {
    try {
      const { maxChunks = MAX_CHUNKS, waitMs = 0 } = this.#options.batch ?? {};
      while (this.#waiting.length > 0) {
        // A moment later in any case, so that chunks that come in one go are one write.
        await (waitMs > 0 && this.#waiting.length < maxChunks ? pause(waitMs) : Promise.resolve());
        const batch = this.#waiting.splice(0, maxChunks);
        await this.#insist(() => this.#options.rows.insertAll(batch, this.#fence()));
        this.written += batch.length;
        this.#last = batch.at(-1);
      }
    } catch (error) {
      this.#failed = { error };
      this.#waiting = [];
    } finally {
      this.#draining = undefined;
    }
  }

  /** Writes; once more if it was refused and what it depends on has moved in between, for as long as it moves. */
  async #insist(write: () => Promise<boolean>): Promise<void> {
    for (let before = this.#stamp(); !(await write());) {
      const now = this.#stamp();
      if (now === before) throw refused();
      before = now;
    }
  }

  #fence(): RowOptions {
    const { when, producer } = this.#options;
    return { when: typeof when === "function" ? when() : when, producer };
  }

  #stamp(): string {
    return JSON.stringify(this.#fence().when ?? []);
  }
}

function refused(): PerdureError {
  return new PerdureError(
    "fenced",
    "A chunk was refused: another writer has this answer. Stop this one; a new try needs its own generationId.",
  );
}

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

interface StreamToCollectionOptions<TRow extends ChunkContract> extends CollectStreamOptions, ChunkSinkOptions<TRow> {}

/**
 * Stores the events of a `chat()` stream as rows, numbered 0, 1, 2, … in order of arrival. Rows are appended and awaited, never
 * optimistic; events that arrive during a write share the next one. Only the last chunk of a complete answer has `isFinal`.
 *
 * @returns the result so far. Only `outcome: "completed"` is an answer.
 * @throws GenerationError with what was stored so far: `cancelled` when the signal was aborted, however the stream then ended;
 *   `model_failed` when the provider reported an error or the stream ended before the answer did; `fenced` when a write was
 *   refused because somebody else has this answer.
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
 * Reads a `chat()` stream to its end and stores nothing; otherwise like {@link streamToCollection}. Unlike
 * `chat({ stream: false })`, it never passes off an aborted, cut or interrupted answer as one.
 */
export function collectStream(
  stream: AsyncIterable<StreamChunk>,
  options: CollectStreamOptions = {},
): Promise<StreamResult> {
  const nowhere = async () => {};
  return readStream(stream, options, { take: nowhere, close: nowhere, counts: () => ({ chunks: 0, nextIndex: 0 }) });
}
