import type {
  Instructions,
  LanguageModel,
  LanguageModelCallOptions,
  ModelMessage,
  OutputInterface,
  PrepareStepFunction,
  StepResult,
  StopCondition,
  TelemetryOptions,
  TextStreamPart,
  TimeoutConfiguration,
  ToolApprovalConfiguration,
  ToolCallRepairFunction,
  ToolChoice,
  ToolSet,
  TypedToolCall,
} from "ai";
import type { UIMessage } from "../../message/types.ts";
import type { ClientTool } from "../../wire/frames.ts";
import type { ChatErrorClassification } from "../provider-error.ts";

/** Settings of the AI SDK that go to a provider as they are. */
type ProviderOptions = NonNullable<Parameters<typeof import("ai").streamText>[0]["providerOptions"]>;

/** What `beforeTurn` is told: the turn as it would run. */
export interface TurnContext<TOOLS extends ToolSet = ToolSet> {
  readonly requestId: string;
  /** The system prompt, with the block on what the tools allow. */
  readonly system: string;
  /** What the model would be sent. */
  readonly messages: ModelMessage[];
  readonly tools: TOOLS;
  readonly model: LanguageModel;
  /** The answer goes on with the last assistant message. */
  readonly continuation: boolean;
  /** The turn was cut off and is being carried on. */
  readonly recovering: boolean;
  /** What the client sent along. */
  readonly body?: Record<string, unknown>;
  /** Tools that the client runs. */
  readonly clientTools?: readonly ClientTool[];
  /** Aborts when the turn is stopped. */
  readonly abortSignal: AbortSignal;
}

/** What `beforeTurn` may change for one turn. */
export interface TurnConfig<TOOLS extends ToolSet = ToolSet> extends LanguageModelCallOptions {
  /** Instead of `getModel()`; a list is tried in order. */
  readonly model?: LanguageModel | readonly LanguageModel[];
  /** Instead of the system prompt. */
  readonly system?: string;
  /** The AI SDK's newer name of `system`; wins over it. */
  readonly instructions?: Instructions;
  /** Instead of the assembled conversation. What the turn itself says and does comes after it. */
  readonly messages?: ModelMessage[];
  /** More tools. One of a known name replaces it. */
  readonly tools?: ToolSet;
  /** The only tools that the model may call. */
  readonly activeTools?: readonly (keyof TOOLS & string)[];
  readonly toolChoice?: ToolChoice<TOOLS>;
  /** Which calls a person has to approve, beside the tools' own `needsApproval`. */
  readonly toolApproval?: ToolApprovalConfiguration<TOOLS, unknown>;
  /** Instead of the class's `maxSteps`. */
  readonly maxSteps?: number;
  /** More reasons to end the turn after a step. `maxSteps` holds all the same. */
  readonly stopWhen?: StopCondition<TOOLS> | readonly StopCondition<TOOLS>[];
  readonly sendReasoning?: boolean;
  readonly sendSources?: boolean;
  /** Tries of one step on one model, beside the first. Default 2. */
  readonly maxRetries?: number;
  /** Of a model call: `totalMs`, `stepMs`, `firstChunkMs`, `chunkMs`; of tools: `toolMs`, `tools`. */
  readonly timeout?: TimeoutConfiguration<TOOLS>;
  readonly headers?: Record<string, string | undefined>;
  readonly providerOptions?: ProviderOptions;
  readonly experimental_telemetry?: TelemetryOptions;
  /** Structured output: `Output.object({ schema })`. What came of it is `output` of the turn's result. */
  readonly output?: OutputInterface;
  readonly repairToolCall?: ToolCallRepairFunction<TOOLS>;
  /** Instead of the class's `chatStreamStallTimeoutMs`; 0: never. */
  readonly chatStreamStallTimeoutMs?: number;
  /** Handed to tools and conditions as `context`. Not stored: after a restart `beforeTurn` is asked again. */
  readonly experimental_context?: unknown;
}

/** What `beforeStep` is told: what the AI SDK tells its `prepareStep`. */
export type PrepareStepContext<TOOLS extends ToolSet = ToolSet> = Parameters<PrepareStepFunction<TOOLS>>[0] & {
  readonly experimental_context?: unknown;
};

/** What `beforeStep` may change for one model call; `experimental_context` also for the steps after it. */
export interface StepConfig<TOOLS extends ToolSet = ToolSet> extends Pick<
  TurnConfig<TOOLS>,
  "toolChoice" | "activeTools" | "system" | "instructions" | "messages" | "providerOptions" | "experimental_context"
> {
  readonly model?: LanguageModel;
}

/** What `beforeToolCall` is told. */
export type ToolCallContext<TOOLS extends ToolSet = ToolSet> = TypedToolCall<TOOLS> & {
  readonly stepNumber: number;
  readonly messages: readonly ModelMessage[];
  readonly abortSignal: AbortSignal;
};

/** What becomes of a tool call. */
export type ToolCallDecision =
  | { readonly action: "allow"; readonly input?: unknown }
  /** It does not run; the model reads `reason` as its output. */
  | { readonly action: "block"; readonly reason?: string }
  /** It does not run; the model reads `output`. */
  | { readonly action: "substitute"; readonly output: unknown };

/** What `afterToolCall` is told. */
export type ToolCallResultContext<TOOLS extends ToolSet = ToolSet> = ToolCallContext<TOOLS> & {
  readonly durationMs: number;
} & (
    | { readonly success: true; readonly output: unknown; readonly error?: undefined }
    | { readonly success: false; readonly error: unknown; readonly output?: undefined }
  );

/** What `onStepFinish` is told: the step as the AI SDK describes it. */
export type StepContext<TOOLS extends ToolSet = ToolSet> = StepResult<TOOLS>;

/** What `onChunk` is told. */
export interface ChunkContext<TOOLS extends ToolSet = ToolSet> {
  readonly chunk: TextStreamPart<TOOLS>;
}

/** Where a turn failed, for `onChatError`. */
export interface ChatErrorContext {
  /** `turn`: a setting or a hook failed. `stream`: the model failed. `recovery`: it is not carried on any more. */
  readonly stage: "turn" | "stream" | "recovery";
  readonly requestId: string;
  /** Whether the messages that the turn answers are stored. */
  readonly messagesPersisted: boolean;
  readonly classification: ChatErrorClassification | undefined;
  /** What there is of the answer, if anything. */
  readonly partial: UIMessage | undefined;
}
