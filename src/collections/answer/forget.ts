import { isSettledStatus, type ChunkContract, type GenerationContract, type ToolCallContract } from "../contract.ts";
import { deleteRows, keyOf, rowsOf, type RowCollection, type Rows } from "../log/rows.ts";
import type { TurnRecord } from "./turn-log.ts";

/** A row that belongs to an answer, or to a worker that was called for one. */
interface Owned {
  readonly generationId?: string;
  readonly parentGenerationId?: string;
}

/** Where answers leave rows. Collections that are not given are left alone. */
interface GenerationTraces<
  TGeneration extends GenerationContract,
  TChunk extends ChunkContract,
  TCall extends ToolCallContract & Owned,
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
 * Deletes the chunks, turns and tool calls of finished answers, and of the workers called for them, which nobody needs once the
 * answer is a message. The answers' own rows stay and say that they are over, so nothing starts again. Answers under way, or
 * resumed meanwhile, are left alone. Any process may call it, at any time and again after a crash.
 * @param ids default: every answer that is over. An id without a row in `generations`, such as a worker that your code ran,
 *   counts as over.
 */
export async function forgetGenerations<
  TGeneration extends GenerationContract,
  TChunk extends ChunkContract,
  TCall extends ToolCallContract & Owned,
>(traces: GenerationTraces<TGeneration, TChunk, TCall>, ids?: Iterable<string>): Promise<Forgotten> {
  const { generations, chunks, turns, toolCalls } = traces;
  const given = [generations, chunks, turns, toolCalls].filter((collection) => collection !== undefined);
  await Promise.all(given.map((collection) => rowsOf(collection as RowCollection<object>).ready()));
  const answers = rowsOf(generations);
  const wanted = new Set(ids ?? answers.all().map(({ id }) => id));
  const isOver = (id: string) => wanted.has(id) && isSettledStatus(answers.get(id)?.status ?? "completed");
  const parents = new Map<string, string>();
  if (chunks !== undefined) readParents(rowsOf(chunks).all(), parents);
  if (toolCalls !== undefined) readParents(rowsOf(toolCalls).all(), parents);

  const forget = async <TRow extends object>(
    collection: RowCollection<TRow> | undefined,
    ownerOf: (row: TRow) => string | undefined,
  ): Promise<number> => {
    if (collection === undefined) return 0;
    const rows = rowsOf(collection);
    let count = 0;
    for (const [id, keys] of keysByAnswer(collection, rows, (row) => rootOf(ownerOf(row), parents))) {
      // Conditions hold within one log.
      const mine = answers.log === rows.log ? answers.unchanged(id) : undefined;
      if (!isOver(id)) continue;
      // The last ones first, so that there is never a gap for who reads them.
      if (await deleteRows(rows, keys.toReversed(), mine === undefined ? {} : { when: [mine] })) count += keys.length;
    }
    return count;
  };

  return {
    chunks: await forget(chunks, ({ generationId }) => generationId),
    turns: await forget(turns, ({ generationId }) => generationId),
    toolCalls: await forget(toolCalls, (row) => (isSettledStatus(row.status) ? row.generationId : undefined)),
  };
}

/** Notes which workers were called for which answers. */
function readParents(rows: readonly Owned[], parents: Map<string, string>): void {
  for (const { generationId, parentGenerationId } of rows) {
    if (generationId !== undefined && parentGenerationId !== undefined) parents.set(generationId, parentGenerationId);
  }
}

/** The answer that all of it was for. */
function rootOf(id: string | undefined, parents: ReadonlyMap<string, string>): string | undefined {
  let root = id;
  // Ids of workers are made from those of their parents, so there is no circle; rows that others wrote may have one.
  for (let depth = 0; root !== undefined && depth <= parents.size; depth++) {
    const parent = parents.get(root);
    if (parent === undefined) return root;
    root = parent;
  }
  return undefined;
}

/** The keys of the rows of each answer, in the order of the rows. */
function keysByAnswer<TRow extends object>(
  collection: RowCollection<TRow>,
  rows: Rows<TRow>,
  answerOf: (row: TRow) => string | undefined,
): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const row of rows.all()) {
    const answer = answerOf(row);
    if (answer === undefined) continue;
    const keys = found.get(answer);
    const key = keyOf(collection, row);
    if (keys === undefined) found.set(answer, [key]);
    else keys.push(key);
  }
  return found;
}
