import type { InferToolInput, InferToolOutput, ToolExecutionContext } from "@tanstack/ai";
import type { ToolCallContract, ToolCallRecord } from "../contract.ts";
import type { RowOptions } from "../rows.ts";

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
export type ToolCallDataOf<T extends ToolLike> = T extends ToolLike
  ? ToolCallData<T["name"], InferToolInput<T>>
  : never;

/**
 * How a call waits. `hold`: the tool's `execute` waits for the row's result, and the run with it. `suspend`: the tool
 * has no `execute`, so that the run ends; it is continued when the results are there.
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
export type ToolCallTransform<T extends ToolLike, TRow extends object> = (
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
    /**
     * The result of a row that is over; what it throws is what the model sees as the tool's error. Default: `result`,
     * or an error with the text of `error`.
     */
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
  /**
   * The same for every try at this call, in every process. Work is done at least once: hand this to what has side
   * effects, so that the second time does nothing.
   */
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
export type ToolResult<T extends ToolLike> =
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
