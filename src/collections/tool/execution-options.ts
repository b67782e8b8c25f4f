import type { Context } from "@tanstack/db";
import type { Approvals } from "../approval/approvals.ts";
import type { Claims } from "../claim/claim.ts";
import type { GenerationContract, ToolCallContract } from "../contract.ts";
import type { RetryPolicy } from "../retry.ts";
import type { RowCollection } from "../rows.ts";
import type { QueryRow, RowQuery } from "../watch.ts";
import type { ToolImplementations, ToolLike, ToolResult } from "./tool-types.ts";

/**
 * What becomes of a result whose answer, or whose call, was cancelled meanwhile. `discard`: the row is cancelled.
 * `store`: the row is cancelled and keeps the result. A function gets it (may be slow; what it throws is tried again
 * as a write is); the row is cancelled after it.
 */
export type LateResults<TRow extends object, TResult> =
  | "discard"
  | "store"
  | ((row: TRow, result: TResult) => void | Promise<void>);

/**
 * What an executor tells. The effect writes the rows itself, and tells afterwards: a callback that throws is reported and
 * changes nothing. With `onComplete` and without `collection` the callbacks are the writes: they are awaited, and one
 * that throws is called again, but the tool is never run again for that. An end that has no callback then, a failure or a
 * cancellation, is still written by the effect.
 */
export interface ToolExecutionCallbacks<TRow extends object, TResult> {
  /** The call begins. Where callbacks write, this claims it: when it throws, the tool does not run yet. */
  onExecuting?(row: TRow): void | Promise<void>;
  onComplete?(row: TRow, result: TResult): void | Promise<void>;
  /** It has failed for good: after its last try, and at once when its arguments or its result are not what they must be. */
  onError?(row: TRow, error: Error): void | Promise<void>;
  /** It was cancelled, by itself or with its answer. */
  onCancelled?(row: TRow): void | Promise<void>;
  onProgress?(row: TRow, value: unknown): void | Promise<void>;
  /** A try has failed and there will be another. `attempt` is the one that failed, from 1. */
  onRetry?(row: TRow, error: Error, attempt: number): void | Promise<void>;
  /** Something beside the tool went wrong: a write, a callback. Must not throw. Default: `console.error`. */
  onProblem?(error: Error, row?: TRow): void;
}

/** Options of `createToolExecutionEffect`. */
export interface ToolExecutionOptions<
  TTools extends readonly ToolLike[],
  TContext extends Context,
  TStored extends ToolCallContract,
  TGeneration extends GenerationContract,
> extends ToolExecutionCallbacks<QueryRow<TContext>, ToolResult<TTools[number]>> {
  /**
   * The calls to be executed: usually those that are `pending`. Rows that are over, that were not confirmed yet or
   * that are of other tools may be in it; they are left alone. What it selects must have `id`, `name` and `args`; a
   * query that joins others to the calls need not select.
   */
  readonly query: RowQuery<TContext>;
  readonly tools: TTools;
  readonly implementations: ToolImplementations<TTools, QueryRow<TContext>>;
  /**
   * The collection of the calls, which the effect writes. Default: the one that the query reads from, unless
   * `onComplete` is there: then the callbacks write.
   */
  readonly collection?: RowCollection<TStored>;
  /** The answers that calls belong to (by `generationId`): when one is cancelled, its calls are. */
  readonly generations?: RowCollection<TGeneration>;
  /** Whether a call's answer was cancelled, for answers that are elsewhere. Asked before the tool runs and after. */
  isCancelled?(row: QueryRow<TContext>): boolean | Promise<boolean>;
  /** Default `discard`. */
  readonly lateResults?: LateResults<QueryRow<TContext>, ToolResult<TTools[number]>>;
  /**
   * Lets many workers compete, and takes over what a dead one left (list `executing` rows in the query for that).
   * Needs `collection`, on the same log.
   */
  readonly claims?: Claims;
  /**
   * Who may allow calls that have `needsApproval`. Without it such calls are not executed. `query`: the query lists
   * only those that were allowed.
   */
  readonly approvals?: Approvals | "query";
  /** When a tool that throws is tried again. Default: never; it has failed, and the model sees why. */
  readonly retry?: RetryPolicy;
  /** How many calls run at once. Default 8. */
  readonly concurrency?: number;
  /** Whether a call of a tool that is not in `tools` fails. Default: it is left to others. */
  readonly strict?: boolean;
  /** How long `dispose()` waits for running tools, in ms. Default 10 s. */
  readonly disposeWaitMs?: number;
}

/** A running executor. */
export interface ToolExecutionEffect extends AsyncDisposable {
  /** Resolves when it has seen the calls that were there; rejects when they cannot be read. */
  readonly ready: Promise<void>;
  /** Resolves when nothing runs and nothing waits to be run now. */
  idle(): Promise<void>;
  /**
   * Aborts what runs and waits for it, for a bounded time. Calls that were not done are pending again. May be called
   * more than once, and inside of a tool or a callback (awaited there, it waits for its whole bound).
   */
  dispose(): Promise<void>;
  readonly disposed: boolean;
}
