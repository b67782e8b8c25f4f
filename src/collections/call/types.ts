import type { InferToolInput, InferToolOutput, ToolExecutionContext } from "@tanstack/ai";
import type { Context } from "@tanstack/db";
import type { Approvals } from "../approval/approvals.ts";
import type { GenerationContract, ToolCallContract, ToolCallRecord } from "../contract.ts";
import type { QueryRow, RowQuery } from "../log/query.ts";
import type { RowCollection, RowOptions } from "../log/rows.ts";
import type { Claims } from "../worker/claim.ts";
import type { RetryPolicy } from "../retry.ts";

/** Any tool of TanStack AI, as far as it is used here: `toolDefinition(…)`, its `.server()` or its `.client()`. */
export interface ToolLike {
  readonly name: string;
  readonly description: string;
  readonly inputSchema?: unknown;
  readonly outputSchema?: unknown;
  readonly needsApproval?: boolean;
}

/** One call of a tool, before it is a row. */
export interface ToolCallData<TName extends string = string, TArgs = unknown> {
  /** The row's id: `<generation id>:<tool call id>`. The same call has the same id in every run. */
  readonly id: string;
  readonly name: TName;
  /** What the model gave, checked by the tool's `inputSchema` but not changed by it. */
  readonly args: TArgs;
  /** The id that the model gave the call. */
  readonly toolCallId: string;
  readonly generationId: string;
  /** There, and true, when the tool's definition asks for a person's consent. */
  readonly needsApproval?: true;
}

/** {@link ToolCallData} of one of these tools: `name` tells which. */
type ToolCallDataOf<T extends ToolLike> = T extends ToolLike ? ToolCallData<T["name"], InferToolInput<T>> : never;

/**
 * `hold`: the tool's `execute`, and with it the run, waits for the row's result. `suspend`: the tool has no `execute`, so the run
 * ends; it continues when the results are there.
 */
export type DurableToolMode = "hold" | "suspend";

/** The part of a durable tool's options that needs nothing of its row. */
interface DurableToolBasics {
  /** The answer that the calls belong to, where `chat({ context: { generationId } })` does not tell. May not throw. */
  readonly generationId?: string | (() => string | undefined);
  /** What the writes of the tool carry: conditions or a producer that shut out a runner which was taken over. */
  readonly write?: () => RowOptions;
}

/** Makes the row of a call. Must give the same row for the same call; what it throws fails the call. */
type ToolCallTransform<T extends ToolLike, TRow extends object> = (
  toolCall: ToolCallDataOf<T>,
  generationId: string,
) => NoInfer<TRow>;

/** Rows that {@link ToolCallRecord} fits need no `transform`. */
type TransformOption<T extends ToolLike, TRow extends object> = ToolCallRecord extends TRow
  ? { readonly transform?: ToolCallTransform<T, TRow> }
  : { readonly transform: ToolCallTransform<T, TRow> };

/** Options of a durable tool. `TResult` is what `getResult` must give. */
export type DurableToolOptions<T extends ToolLike, TRow extends object, TResult> = DurableToolBasics &
  TransformOption<T, TRow> & {
    /** Default `hold`. */
    readonly mode?: DurableToolMode;
    /** Whether the call is over. May not throw. Default: `completed`, `failed` or `cancelled`. */
    readonly isComplete?: (row: TRow) => boolean;
    /** The result of a finished row; what it throws is the tool's error to the model. Default: `result`, or `error` thrown. */
    readonly getResult?: (row: TRow) => TResult | Promise<TResult>;
    /** How long to wait, in ms. Default: as long as it takes. */
    readonly timeout?: number;
    /** Whether a call that took too long is also cancelled. Default: no, it may end later. */
    readonly cancelOnTimeout?: boolean;
    /** Marks a row as cancelled. Default: `status = "cancelled"`. */
    readonly cancel?: (draft: TRow) => void;
  };

/** Options of a tool that does not wait. */
export type AsyncToolOptions<T extends ToolLike, TRow extends object> = DurableToolBasics &
  TransformOption<T, TRow> & {
    /** What the model gets at once. Default `{ jobId: <row id>, status: "queued" }`. */
    readonly getImmediateResult?: (row: TRow) => unknown;
  };

/** The last argument of a function: may be left out where nothing in it is required. */
export type OptionsArgument<TOptions> = {} extends TOptions ? [options?: TOptions] : [options: TOptions];

type KeptField = "name" | "description" | "inputSchema" | "outputSchema" | "lazy" | "metadata";

/** A tool for `chat()` whose calls are rows. */
export type DurableTool<T extends ToolLike, TResult = InferToolOutput<T>> = Pick<T, Extract<keyof T, KeptField>> & {
  readonly execute?: (args: InferToolInput<T>, context?: ToolExecutionContext) => Promise<TResult>;
};

/** {@link DurableTool} of each tool of a list. */
export type DurableTools<TTools extends readonly ToolLike[]> = {
  [Index in keyof TTools]: DurableTool<TTools[Index]>;
};

/** What an implementation is told about the call that it runs. */
export interface ToolRun<TRow extends object = ToolCallContract> {
  /** Aborts when the call or its answer is cancelled, when another worker has taken it over, and at `dispose()`. */
  readonly signal: AbortSignal;
  /** The same for every try of this call, in every process. Work happens at least once: use it to deduplicate effects. */
  readonly idempotencyKey: string;
  /** Which try this is, from 1. */
  readonly attempt: number;
  /** Keeps the latest news of a long job in the row. Resolves when it is stored; never rejects; need not be awaited. */
  progress(value: unknown): Promise<void>;
  readonly row: TRow;
}

/** The tool of a list that has this name. */
type ToolNamed<TTools extends readonly ToolLike[], TName> = Extract<TTools[number], { readonly name: TName }>;

/** What an execution of a tool gives: its output, unless that is what a background tool says at once. */
type ToolResult<T extends ToolLike> =
  InferToolOutput<T> extends { readonly status: "queued" } ? unknown : InferToolOutput<T>;

/** A function for each tool: all of them, with the types of its schemas. */
export type ToolImplementations<TTools extends readonly ToolLike[], TRow extends object = ToolCallContract> = {
  readonly [Name in TTools[number]["name"]]: (
    args: InferToolInput<ToolNamed<TTools, Name>>,
    run: ToolRun<TRow>,
  ) => ToolResult<ToolNamed<TTools, Name>> | Promise<ToolResult<ToolNamed<TTools, Name>>>;
};

/** A tool's result, as a message behind the message that called it. */
export interface ToolResultMessage {
  role: "tool";
  toolCallId: string;
  content: string;
}

/**
 * What happens to a result whose answer or call was cancelled meanwhile. `discard`: the row is cancelled. `store`: the row is
 * cancelled and keeps the result. A function gets it first (may be slow; retried like a write if it throws).
 */
export type LateResults<TRow extends object, TResult> =
  | "discard"
  | "store"
  | ((row: TRow, result: TResult) => void | Promise<void>);

/**
 * What an executor reports. The effect writes the rows, then calls back: a callback that throws is reported and changes nothing.
 * With `onComplete` and without `collection` the callbacks are the writes: they are awaited and retried when they throw, without
 * running the tool again. The effect still writes a failure or cancellation that has no callback.
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
  /** Something beside the tool went wrong: a write, a callback. Default: `console.error`. */
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
   * The calls to execute, usually the `pending` ones. Rows that are over, unconfirmed or of other tools are left alone. A select
   * must keep `id`, `name` and `args`; a query that joins others to the calls need not select.
   */
  readonly query: RowQuery<TContext>;
  readonly tools: TTools;
  readonly implementations: ToolImplementations<TTools, QueryRow<TContext>>;
  /** The collection of calls that the effect writes. Default: the one the query reads; with `onComplete`, none. */
  readonly collection?: RowCollection<TStored>;
  /** The answers that calls belong to (by `generationId`): when one is cancelled, its calls are. */
  readonly generations?: RowCollection<TGeneration>;
  /** Whether a call's answer was cancelled, for answers that are elsewhere. Asked before the tool runs and after. */
  isCancelled?(row: QueryRow<TContext>): boolean | Promise<boolean>;
  /** Default `discard`. */
  readonly lateResults?: LateResults<QueryRow<TContext>, ToolResult<TTools[number]>>;
  /** Lets workers compete, and take over from dead ones if the query lists `executing` rows. Needs `collection` on its log. */
  readonly claims?: Claims;
  /** Who may allow calls that have `needsApproval`; without it they never run. `query`: the query lists only allowed ones. */
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
   * Aborts what runs and waits for it, for a bounded time. Unfinished calls become pending again. May be called repeatedly, and
   * inside a tool or callback (awaited there, it takes the full bound).
   */
  dispose(): Promise<void>;
  readonly disposed: boolean;
}
