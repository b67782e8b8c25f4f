import type { StreamChunk } from "@tanstack/ai";
import { PerdureError } from "../../base/error.ts";
import type { ChunkContract, ChunkRecord, ChunkType } from "../contract.ts";
import { deleteRows, keyOf, rowsOf, type RowCollection, type RowOptions } from "../log/rows.ts";

/** A chunk that keeps the whole event, so that anything can be rebuilt from it. */
export interface RawChunkRecord extends ChunkRecord {
  /** The event as `chat()` gave it. */
  chunk: StreamChunk;
}

/** What every kind of event is stored as. All others are `other`: kept, and no part of what people read. */
const CHUNK_TYPES: ReadonlyMap<string, ChunkType> = new Map<string, ChunkType>([
  ["TEXT_MESSAGE_CONTENT", "text"],
  ["REASONING_MESSAGE_CONTENT", "thinking"],
  ["TOOL_CALL_START", "tool-call-start"],
  ["TOOL_CALL_ARGS", "tool-call-args"],
  ["TOOL_CALL_END", "tool-call-end"],
  ["TOOL_CALL_RESULT", "tool-result"],
]);

/** What an event of `chat()` is stored as. Events that are not known are `other`, never text. */
export function mapChunkType(type: string): ChunkType {
  return CHUNK_TYPES.get(type) ?? "other";
}

/** The id of a chunk. Two writers of the same answer want the same ids, and the log gives each to one of them. */
export function chunkRowId(generationId: string, index: number): string {
  return `${generationId}:${index}`;
}

/** An event as the default row. Of events that are `other` only the name is kept. */
export function toChunkRecord(chunk: StreamChunk, index: number, generationId: string): ChunkRecord {
  const type = mapChunkType(chunk.type);
  const call = toolOf(chunk);
  return {
    id: chunkRowId(generationId, index),
    generationId,
    index,
    type,
    content: contentOf(chunk),
    ...(call.id === undefined ? {} : { toolCallId: call.id }),
    ...(call.name === undefined ? {} : { toolName: call.name }),
  };
}

/**
 * Keeps a whole event as a row: pass it as `transform` of {@link streamToCollection}. TanStack AI's `StreamProcessor` rebuilds
 * messages from the `chunk`s of an answer in `index` order.
 */
export function toRawChunk(chunk: StreamChunk, index: number, generationId: string): RawChunkRecord {
  return { ...toChunkRecord(chunk, index, generationId), chunk };
}

/** The chunks of one answer, in order. Looks at every row of the collection. */
export function readChunks<TRow extends ChunkContract>(collection: RowCollection<TRow>, generationId: string): TRow[] {
  return rowsOf(collection)
    .all()
    .filter((row) => row.generationId === generationId)
    .toSorted((a, b) => a.index - b.index);
}

/** The text of one answer's chunks, in any order and with duplicates. {@link isCompleteAnswer} says whether it is complete. */
export function assembleText(chunks: Iterable<{ index: number; type: string; content: string }>): string {
  const texts = new Map<number, string>();
  for (const { index, type, content } of chunks) if (type === "text") texts.set(index, content);
  return [...texts]
    .toSorted(([a], [b]) => a - b)
    .map(([, text]) => text)
    .join("");
}

/** Whether these chunks are all of an answer that was finished: the last one is final, and none is missing. */
export function isCompleteAnswer(chunks: Iterable<{ index: number; isFinal?: boolean | undefined }>): boolean {
  const finals = new Map<number, boolean>();
  for (const { index, isFinal } of chunks) finals.set(index, isFinal === true);
  return finals.size > 0 && finals.get(finals.size - 1) === true;
}

/**
 * Deletes the chunks of an answer from an index on: what a turn that was cut off has left.
 * @throws PerdureError `fenced` when that was refused.
 */
export async function deleteChunksFrom<TRow extends ChunkContract>(
  collection: RowCollection<TRow>,
  generationId: string,
  index: number,
  options: RowOptions,
): Promise<void> {
  const rows = rowsOf(collection);
  for (;;) {
    const left = readChunks(collection, generationId).filter((chunk) => chunk.index >= index);
    if (left.length === 0) return;
    // From the end, so that there is never a gap for readers.
    const keys = left.toReversed().map((chunk) => keyOf(collection, chunk));
    if (await deleteRows(rows, keys, options)) continue;
    throw new PerdureError("fenced", `The chunks of "${generationId}" now belong to another run. Stop this one.`);
  }
}

/** Marks the last chunk of a complete answer as final if it is not yet. Returns how many chunks there are. */
export async function finishChunks<TRow extends ChunkContract>(
  collection: RowCollection<TRow>,
  generationId: string,
  options: RowOptions,
): Promise<number> {
  const rows = rowsOf(collection);
  await rows.ready();
  const chunks = readChunks(collection, generationId);
  const last = chunks.at(-1);
  if (last !== undefined && last.isFinal !== true) {
    await rows.update(keyOf(collection, last), (draft) => void (draft.isFinal = true), options);
  }
  return chunks.length;
}

function contentOf(chunk: StreamChunk): string {
  switch (chunk.type) {
    case "TEXT_MESSAGE_CONTENT":
    case "REASONING_MESSAGE_CONTENT":
    case "TOOL_CALL_ARGS":
      return chunk.delta;
    case "TOOL_CALL_RESULT":
      return chunk.content;
    case "TOOL_CALL_START":
    case "TOOL_CALL_END":
      return "";
    default:
      return chunk.type;
  }
}

function toolOf(chunk: StreamChunk): { id?: string; name?: string } {
  switch (chunk.type) {
    case "TOOL_CALL_START":
      return { id: chunk.toolCallId, name: chunk.toolCallName };
    case "TOOL_CALL_ARGS":
    case "TOOL_CALL_END":
    case "TOOL_CALL_RESULT":
      return { id: chunk.toolCallId };
    default:
      return {};
  }
}

/** The index of an answer's last stored chunk; -1: none is. */
export function getLastPersistedChunkIndex<TRow extends ChunkContract>(
  chunks: RowCollection<TRow>,
  generationId: string,
): number {
  let last = -1;
  for (const chunk of rowsOf(chunks).all()) if (chunk.generationId === generationId) last = Math.max(last, chunk.index);
  return last;
}

/**
 * The text that was stored of an answer, as far as it has no gap. Models cannot go on in the middle of an answer:
 * it is there to be shown, or to be given to the model with the request to continue.
 */
export function getPartialContent<TRow extends ChunkContract & { type: string; content: string }>(
  chunks: RowCollection<TRow>,
  generationId: string,
): string {
  const own = new Map<number, TRow>();
  for (const chunk of rowsOf(chunks).all()) if (chunk.generationId === generationId) own.set(chunk.index, chunk);
  let text = "";
  for (let index = 0; ; index++) {
    const chunk = own.get(index);
    if (chunk === undefined) return text;
    if (chunk.type === "text") text += chunk.content;
  }
}
