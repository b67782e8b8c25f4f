import type { GenerationContract } from "../contract.ts";
import { rowsOf } from "../rows.ts";
import type { RowCollection } from "../rows.ts";

/** What {@link resumeToolChain} needs to see of an answer. */
export interface ResumableGeneration extends GenerationContract {
  resumeFromToolIndex?: number;
  error?: string;
  updatedAt?: string;
}

/** What {@link resumeToolChain} needs to see of a tool call. */
export interface ChainedToolCall {
  id: string;
  generationId: string;
  status: string;
}

/** What {@link resumeToolChain} found. */
export interface ResumedToolChain {
  /** Whether the answer is `pending` again because of this call. */
  readonly resumed: boolean;
  /** The calls that have their result. */
  readonly completed: readonly string[];
  /** The calls that have none: `pending`, `executing` or `failed`. */
  readonly open: readonly string[];
}

const RESUMABLE: ReadonlySet<string> = new Set(["generating", "suspended", "failed"]);

/**
 * Lets an answer that was cut off among its tool calls go on: it becomes `pending`, and `resumeFromToolIndex` says
 * how many of its calls have their results, which are kept. An answer without calls is left as it is: there is
 * nothing to go on from. So is one that is `pending`, `completed` or `cancelled`. One that is `generating` is taken
 * as cut off: call it for orphans only (see `recoverOrphanedOperations`). Several may call it at once: one resumes.
 */
export async function resumeToolChain<TGeneration extends ResumableGeneration, TToolCall extends ChainedToolCall>(
  generationId: string,
  options: { readonly generations: RowCollection<TGeneration>; readonly toolCalls: RowCollection<TToolCall> },
): Promise<ResumedToolChain> {
  const generations = rowsOf(options.generations);
  const toolCalls = rowsOf(options.toolCalls);
  await Promise.all([generations.ready(), toolCalls.ready()]);
  const calls = toolCalls.all().filter((call) => call.generationId === generationId && call.status !== "cancelled");
  const completed = calls.filter(({ status }) => status === "completed").map(({ id }) => id);
  const open = calls.filter(({ status }) => status !== "completed").map(({ id }) => id);
  if (calls.length === 0) return { resumed: false, completed, open };
  const seen = generations.get(generationId);
  const resume = (draft: ResumableGeneration) => {
    if (!RESUMABLE.has(draft.status) || draft.status !== seen?.status) return false;
    draft.status = "pending";
    draft.resumeFromToolIndex = completed.length;
    draft.updatedAt = new Date().toISOString();
    delete draft.error;
    return true;
  };
  return { resumed: await generations.update(generationId, resume), completed, open };
}
