import type { ChunkContract, GenerationContract, ToolCallContract } from "../contract.ts";
import { deleteRows } from "../delete-rows.ts";
import { isSettledStatus } from "../generation/generation-rows.ts";
import type { TurnRecord } from "../generation/turn-log.ts";
import { rowsOf } from "../rows.ts";
import type { RowCollection, Rows } from "../rows.ts";

/** Where answers leave rows. Collections that are not given are left alone. */
export interface GenerationTraces<
  TGeneration extends GenerationContract,
  TChunk extends ChunkContract,
  TCall extends ToolCallContract & { generationId?: string },
> {
  /** Says which answers are over. Its own rows stay. */
  readonly generations: RowCollection<TGeneration>;
  readonly chunks?: RowCollection<TChunk>;
  readonly turns?: RowCollection<TurnRecord>;
  /** Only calls that are over are deleted. */
  readonly toolCalls?: RowCollection<TCall>;
}

/** How many rows {@link forgetGenerations} has deleted. */
export interface Forgotten {
  readonly chunks: number;
  readonly turns: number;
  readonly toolCalls: number;
}

/**
 * Deletes what finished answers were made of: their chunks, turns and tool calls, which nobody needs once the answer is
 * a message. The rows of the answers stay, and say that they are over, so nothing begins again. Answers under way are left
 * alone, also those that somebody takes up again meanwhile. Any process may call it, at any time and again after a crash;
 * each row counts where it was found.
 * @param ids whose; default: of every answer that is over. Unknown ones are ignored.
 */
export async function forgetGenerations<
  TGeneration extends GenerationContract,
  TChunk extends ChunkContract,
  TCall extends ToolCallContract & { generationId?: string },
>(traces: GenerationTraces<TGeneration, TChunk, TCall>, ids?: Iterable<string>): Promise<Forgotten> {
  const generations = rowsOf(traces.generations);
  await generations.ready();
  const over = generations.all().filter(({ status }) => isSettledStatus(status));
  const wanted = ids === undefined ? undefined : new Set(ids);
  const owners = new Set(over.map(({ id }) => id).filter((id) => wanted?.has(id) ?? true));

  /** Row by row of one collection, answer by answer: each answer must still be over when its rows go. */
  const forget = async <TRow extends object>(
    collection: RowCollection<TRow> | undefined,
    ownerOf: (row: TRow) => string | undefined,
  ): Promise<number> => {
    if (collection === undefined) return 0;
    const rows = rowsOf(collection);
    await rows.ready();
    let count = 0;
    for (const [id, keys] of keysByOwner(collection, rows, ownerOf, owners)) {
      const mine = generations.unchanged(id);
      const row = generations.get(id);
      if (row === undefined || !isSettledStatus(row.status)) continue;
      // The last ones first, so that there is never a gap for who reads them.
      if (await deleteRows(rows, keys.toReversed(), mine === undefined ? {} : { when: [mine] })) count += keys.length;
    }
    return count;
  };

  return {
    chunks: await forget(traces.chunks, ({ generationId }) => generationId),
    turns: await forget(traces.turns, ({ generationId }) => generationId),
    toolCalls: await forget(traces.toolCalls, (row) => (isSettledStatus(row.status) ? row.generationId : undefined)),
  };
}

/** The keys of the rows of each owner, in the order of the rows. */
function keysByOwner<TRow extends object>(
  collection: RowCollection<TRow>,
  rows: Rows<TRow>,
  ownerOf: (row: TRow) => string | undefined,
  owners: ReadonlySet<string>,
): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const row of rows.all()) {
    const owner = ownerOf(row);
    if (owner === undefined || !owners.has(owner)) continue;
    const keys = found.get(owner);
    const key = String(collection.config.getKey(row));
    if (keys === undefined) found.set(owner, [key]);
    else keys.push(key);
  }
  return found;
}
