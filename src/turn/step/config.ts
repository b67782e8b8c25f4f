import type {
  InferToolInput,
  Instructions,
  LanguageModel,
  LanguageModelCallOptions,
  ModelMessage,
  OutputInterface,
  PrepareStepFunction,
  SingleToolApprovalFunction,
  StepResult,
  StopCondition,
  streamText,
  TelemetryOptions,
  TextStreamPart,
  TimeoutConfiguration,
  ToolApprovalConfiguration,
  ToolApprovalStatus,
  ToolCallRepairFunction,
  ToolSet,
} from "ai";
import type { Identity } from "../../base/identity.ts";
import type { UIMessage } from "../../message/types.ts";
import type { ClientTool } from "../../wire/frames.ts";
import type { ChatErrorClassification } from "../../store/usage.ts";

/** Settings of the AI SDK that go to a provider as they are. */
type ProviderOptions = NonNullable<Parameters<typeof streamText>[0]["providerOptions"]>;

/** A function that a class writes for the tools that it names, used where any tools may come. */
type Loose<F extends (...args: never[]) => unknown> = { call(...args: Parameters<F>): ReturnType<F> }["call"];

/*
 * Hooks for named tools must also do for any tools, or a class could not write them so. The compiler sees that by names and
 * parts; with `keyof TOOLS` it would think the opposite.
 */
type NameOf<TOOLS extends ToolSet> = Extract<keyof TOOLS, string>;

/** Which calls a person has to approve: by the name of the tool, or by a function of the call. */
type ApprovalRules<TOOLS extends ToolSet> =
  | Loose<Extract<ToolApprovalConfiguration<TOOLS, unknown>, (...args: never[]) => unknown>>
  | {
      readonly [NAME in keyof TOOLS]?:
        | ToolApprovalStatus
        | Loose<SingleToolApprovalFunction<InferToolInput<TOOLS[NAME]>, unknown, unknown>>;
    };

/** Which turn something is about. */
export interface OfTurn {
  /** The client's request id, or the server's own for turns that it starts. */
  readonly requestId: string;
  readonly sessionId: string;
  /** For whom it is: who wrote the message that began it, where the app has said who that is. */
  readonly identity?: Identity;
}

/** What a client sent along with its request. */
export interface SentAlong {
  /** Without what belongs to the protocol. */
  readonly body?: Record<string, unknown>;
  /** Tools that the client runs. */
  readonly clientTools?: readonly ClientTool[];
}

/** What `onChatMessage` is told about the turn that it answers. */
export interface ChatTurnOptions extends OfTurn, SentAlong {
  /** Aborts when the turn is stopped. Hand it to the model call. */
  readonly abortSignal: AbortSignal;
  /** The answer continues the last assistant message instead of starting a new one. */
  readonly continuation: boolean;
}

/** What `beforeTurn` is told: the turn as it would run. */
export interface TurnContext<TOOLS extends ToolSet = ToolSet> extends ChatTurnOptions {
  /** The system prompt, with the block on what the tools allow. */
  readonly system: string;
  /** What the model would be sent. */
  readonly messages: ModelMessage[];
  readonly tools: TOOLS;
  readonly model: LanguageModel;
  /** The turn was cut off and continues. */
  readonly recovering: boolean;
}

/** What may be changed for a turn, and for one model call of it. */
interface CallConfig<NAME extends string> {
  /** Instead of the system prompt. */
  readonly system?: string;
  /** The AI SDK's newer name of `system`; wins over it. */
  readonly instructions?: Instructions;
  /** The only tools that the model may call. */
  readonly activeTools?: readonly NAME[];
  readonly toolChoice?: "auto" | "none" | "required" | { readonly type: "tool"; readonly toolName: NAME };
  readonly providerOptions?: ProviderOptions;
  /** Handed to tools and conditions as `context`. Not stored: after a restart the hooks are asked again. */
  readonly experimental_context?: unknown;
}

/** What `beforeTurn` may change for one turn. */
export interface TurnConfig<TOOLS extends ToolSet = ToolSet>
  extends CallConfig<NameOf<TOOLS>>, LanguageModelCallOptions {
  /** Instead of `getModel()`; a list is tried in order. */
  readonly model?: LanguageModel | readonly LanguageModel[];
  /** Instead of the assembled conversation. What the turn itself says and does comes after it. */
  readonly messages?: ModelMessage[];
  /** More tools. One of a known name replaces it. */
  readonly tools?: ToolSet;
  /** Which calls a person has to approve, beside the tools' own `needsApproval`. */
  readonly toolApproval?: ApprovalRules<TOOLS>;
  /** Instead of the class's `maxSteps`. */
  readonly maxSteps?: number;
  /** More reasons to end the turn after a step. `maxSteps` holds all the same. */
  readonly stopWhen?: Loose<StopCondition<TOOLS>> | readonly Loose<StopCondition<TOOLS>>[];
  readonly sendReasoning?: boolean;
  readonly sendSources?: boolean;
  /** Tries of one step on one model, beside the first. Default 2. */
  readonly maxRetries?: number;
  /** Of a model call: `totalMs`, `stepMs`, `firstChunkMs`, `chunkMs`; of tools: `toolMs`, `tools`. */
  readonly timeout?: TimeoutConfiguration<TOOLS>;
  readonly headers?: Record<string, string | undefined>;
  /** Who is told of the turn, beside what `registerTelemetry` of the AI SDK was given. */
  readonly experimental_telemetry?: TelemetryOptions;
  /** Structured output: `Output.object({ schema })`. What came of it is `output` of the turn's result. */
  readonly output?: OutputInterface;
  readonly repairToolCall?: Loose<ToolCallRepairFunction<TOOLS>>;
  /** Instead of the class's `chatStreamStallTimeoutMs`; 0: never. */
  readonly chatStreamStallTimeoutMs?: number;
}

/** What `beforeStep` is told: what the AI SDK tells its `prepareStep`. */
export type PrepareStepContext<TOOLS extends ToolSet = ToolSet> = Parameters<PrepareStepFunction<TOOLS>>[0] & {
  readonly experimental_context?: unknown;
  /** For whom the turn is. */
  readonly identity?: Identity;
};

/** What `beforeStep` may change for one model call; `experimental_context` also for the steps after it. */
export type StepConfig<TOOLS extends ToolSet = ToolSet> = OneCallConfig<NameOf<TOOLS>>;

interface OneCallConfig<NAME extends string> extends CallConfig<NAME> {
  readonly model?: LanguageModel;
  /** Instead of all that would be sent, with what the turn has said and done. */
  readonly messages?: ModelMessage[];
}

/** What `onStepFinish` is told: the step as the AI SDK describes it. */
export type StepContext<TOOLS extends ToolSet = ToolSet> = StepResult<TOOLS>;

/** What `onChunk` is told. */
export type ChunkContext<TOOLS extends ToolSet = ToolSet> = Chunk<TextStreamPart<TOOLS>>;

interface Chunk<PART> {
  readonly chunk: PART;
}

/**
 * Where a turn failed. `parse`: reading the request. `persist`: storing its messages or the answer. `turn`: a setting or a hook.
 * `stream`: the model failed or stalled. `recovery`: it was cut off and is not carried on any more.
 */
export type ChatErrorStage = "parse" | "persist" | "turn" | "stream" | "recovery";

/** What failed, for `onChatError`. */
export interface ChatErrorContext {
  readonly stage: ChatErrorStage;
  readonly requestId: string;
  /** For whom the turn is. */
  readonly identity?: Identity;
  /** Whether the messages that the turn answers are stored. */
  readonly messagesPersisted: boolean;
  readonly classification: ChatErrorClassification | undefined;
  /** What there is of the answer, if anything. */
  readonly partial: UIMessage | undefined;
}

/** Which call failed, for `classifyChatError`. */
export type ChatClassifyContext = Omit<ChatErrorContext, "requestId"> & {
  /** Undefined where a model was asked outside a turn: for a title, or for a summary that code asked for. */
  readonly requestId: string | undefined;
};
