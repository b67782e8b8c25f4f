import type { ChunkContract } from "../contract.ts";
import { rowsOf } from "../rows.ts";
import type { RowCollection } from "../rows.ts";

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
