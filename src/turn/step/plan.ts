import type { LanguageModel, ModelMessage, StopCondition, Tool, ToolSet } from "ai";
import type { Converted } from "../../context/shown-units.ts";
import type { UIMessage } from "../../message/types.ts";
import type { Identity } from "../../base/identity.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Payers } from "../../ledger/payers.ts";
import type { BackgroundRow } from "../../store/background-call.ts";
import type { TurnRow } from "../../store/turn.ts";
import type { CallBook } from "../../tool/call-book.ts";
import type { CallOutcome } from "../../tool/runner.ts";
import type { ChatTurnOptions } from "../engine/chat-types.ts";
import type { ChatErrorClassification } from "../../store/usage.ts";
import type { ContextPlan } from "./context-plan.ts";
import type { AskedTurn } from "../policy.ts";
import type { ChatErrorContext, TurnConfig } from "./config.ts";

/** A turn, whether it runs or is over, and for whom it is. */
export interface TurnOf {
  readonly turn: string;
  readonly identity: Identity | undefined;
}

/** Whether one more call may go on without its turn: the runs that it comes of, as JSON; or why not, for the model. */
export type BackgroundAdmission = { readonly lineage: string | null } | { readonly refused: string };

/** A call on its way into the background. */
export interface MovedCall {
  readonly messageId: string;
  readonly toolCallId: string;
  readonly turn: Pick<TurnRow, "id" | "session" | "identity">;
  /** Whether it runs already. */
  readonly begun: boolean;
  /** What the tool is given, where a hook has changed what the model wrote. */
  readonly given?: unknown;
  readonly lineage: string | null;
}

/** What a turn does with calls that it does not wait for. */
export interface StepBackground {
  /** Asks whether one more may begin, and counts it. */
  admit(turnId: string): Promise<BackgroundAdmission>;
  /** How many more may go on at one time. */
  room(): number;
  /** A call that has begun goes on without the turn, in the transaction that shows its receipt. */
  moved(call: MovedCall): BackgroundRow;
  /** Runs it from its beginning. */
  begin(row: BackgroundRow, tool: Tool, messages: readonly ModelMessage[], context: unknown): void;
  /** Waits for one that runs already. */
  follow(
    row: BackgroundRow,
    given: { readonly tool: Tool; readonly messages: readonly ModelMessage[] },
    stop: AbortController,
    outcome: Promise<CallOutcome>,
  ): void;
  /** How far it is. */
  progress(seq: number, output: unknown): void;
}

/** A turn as it will run: the class's settings with what `beforeTurn` changed. */
export interface PreparedTurn {
  /** Tried in this order. At least one. */
  readonly models: readonly LanguageModel[];
  readonly instructions: NonNullable<TurnConfig["instructions"]> | undefined;
  /** What they and the tools are after a compaction, with the text of the context blocks made anew. May be slow. */
  renew?(): Promise<Pick<PreparedTurn, "instructions" | "tools">>;
  /** All tools: the server's with `execute`, the client's without. */
  readonly tools: ToolSet;
  /** Instead of the assembled conversation. */
  readonly messages: ModelMessage[] | undefined;
  readonly maxSteps: number;
  readonly stopWhen: readonly StopCondition<ToolSet>[];
  readonly sendReasoning: boolean;
  readonly config: TurnConfig;
}

/** What the step loop needs of the agent for one turn, and how it is asked: see `ask`. */
export interface StepPlan extends AskedTurn {
  readonly ledger: Ledger;
  readonly book: CallBook;
  readonly context: ContextPlan;
  /** Who pays for a turn besides the agent; undefined when it is taken for nobody else. */
  payers(turn: number): Payers | undefined;
  /** Once per attempt. */
  prepare(options: ChatTurnOptions & { readonly recovering: boolean }): Promise<PreparedTurn>;
  /** The conversation as the model reads it, without what this turn has added to the answer. */
  assemble(messages: readonly UIMessage[], tools: ToolSet): Promise<ModelMessage[]>;
  /** What this turn has added. */
  convert(message: UIMessage, tools: ToolSet): Promise<ModelMessage[]>;
  /** What stored messages become, each apart, whatever the agent makes of them all. */
  shown(messages: readonly UIMessage[], tools: ToolSet): Promise<readonly Converted[]>;
  /** Gives a tool that another one calls its agent, where it needs one. */
  bind(name: string, tool: Tool): Tool;
  /** Calls that go on without their turn. */
  readonly background: StepBackground;
  /** What kind of error a model call of the turn gave. */
  classify(error: unknown, context: ChatErrorContext): Promise<ChatErrorClassification>;
  /** Loads a file for a model that cannot do it itself. */
  loadFile(file: { url: URL; abortSignal?: AbortSignal }): Promise<{ data: Uint8Array; mediaType: string | undefined }>;
  /** A file cannot be loaded for the model. Never throws. */
  fileLost(url: string, error: unknown): void;
  /** Keeps a tool's whole output and says where; undefined when it cannot. */
  keep(text: string): Promise<string | undefined>;
}
