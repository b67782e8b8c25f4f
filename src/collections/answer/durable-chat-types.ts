import type { AnyTextAdapter, AnyTool, chat, Interrupt, ModelMessage, StreamChunk, TokenUsage } from "@tanstack/ai";
import type { ChunkContract, ToolCallContract } from "../contract.ts";
import type { RowProducer } from "../../wire/row-frames.ts";
import type { RowCollection } from "../log/rows.ts";
import type { DurableToolMode, DurableToolOptions, ToolLike } from "../call/types.ts";
import type { ChunkSinkOptions, TransformOption, Conditions } from "./stream-to-collection.ts";
import type { TurnRecord } from "./turn-log.ts";

/** What `chat()` can be given, but for what `durableChat` has its own way with. */
type ChatSettings<TAdapter extends AnyTextAdapter> = Omit<
  Parameters<typeof chat<TAdapter, undefined, true>>[0],
  "tools" | "stream" | "outputSchema" | "context" | "middleware" | "interrupts"
>;

/** Options of `durableChat`. All collections must be of one log where `when` or `producer` is given. */
export type DurableChatOptions<
  TAdapter extends AnyTextAdapter,
  TToolRow extends ToolCallContract,
  TChunkRow extends ChunkContract,
> = ChatSettings<TAdapter> & {
  /**
   * With `toolCalls`, tools without an implementation become durable: their calls are rows, executed elsewhere. Tools with one
   * (`.server(…)`) run here; tools that are already durable stay as they are.
   */
  readonly tools?: readonly AnyTool[];
  readonly toolCalls?: { readonly collection: RowCollection<TToolRow> } & Omit<
    DurableToolOptions<ToolLike, TToolRow, unknown>,
    "mode" | "generationId" | "write"
  >;
  /** Stores the chunks as `streamToCollection` does. */
  readonly chunks?: Pick<ChunkSinkOptions<TChunkRow>, "collection" | "filter" | "batch"> &
    TransformOption<TChunkRow> & {
      /** Names the answer, as `generationId` does. Give one of the two, or the same twice. */
      readonly generationId?: string;
    };
  /** Keeps what the answer has come to, so that it can be taken up again. Needed for `suspend`. */
  readonly turns?: RowCollection<TurnRecord>;
  /** Names the answer. A new one by default. */
  readonly generationId?: string;
  /** What a call of a durable tool does with the run. Default `hold`. */
  readonly mode?: DurableToolMode;
  /** Ends the run with a GenerationError `cancelled`; so does `abortController`. */
  readonly signal?: AbortSignal;
  /** What must hold at each write: a claim, for instance. */
  readonly when?: Conditions;
  readonly producer?: RowProducer;
  /** Called with each event before it is stored. What it throws ends the run; it must be quick. */
  readonly onChunk?: (chunk: StreamChunk) => void;
  /** As for `chat()`. Tools find `generationId` in it too. */
  readonly context?: object;
  /** As for `chat()`. */
  readonly middleware?: NonNullable<Parameters<typeof chat<TAdapter, undefined, true>>[0]["middleware"]>;
};

interface DurableChatOutcome {
  readonly generationId: string;
  /** The text of all turns of the model over all runs. An answer only if `completed`. */
  readonly content: string;
  /** How many chunks the answer has by now. */
  readonly chunks: number;
  /** The turns of the answer: what belongs behind `messages` in the conversation. */
  readonly messages: readonly ModelMessage[];
  readonly finishReason: string | null;
  /** The tokens of this run, if the model's server tells. */
  readonly usage?: TokenUsage;
}

/** The answer is there. */
export interface CompletedChat extends DurableChatOutcome {
  readonly outcome: "completed";
  /** The text of the model's last turn: without what it said before it called tools. */
  readonly lastText: string;
}

/** The answer waits. It is no answer yet. */
export interface SuspendedChat extends DurableChatOutcome {
  readonly outcome: "suspended";
  /** The ids of the rows of tool calls that have no result yet. */
  readonly pending: readonly string[];
  /** Approvals and tools that TanStack AI itself waits for: answer them with `resume` and `parentRunId: runId`. */
  readonly interrupts: readonly Interrupt[];
  /** The run that has ended; none when there was nothing to run yet. */
  readonly runId?: string;
}

/** What became of the answer. */
export type DurableChatResult = CompletedChat | SuspendedChat;
