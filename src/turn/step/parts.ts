import type { Instructions, LanguageModel, ModelMessage, StopCondition, Tool, ToolSet } from "ai";
import type { Identity } from "../../base/identity.ts";
import type { BackgroundWork } from "../../context/summary-ahead.ts";
import type { LiveState } from "../../context/carried.ts";
import type { Compactor } from "../../context/compactor.ts";
import type { LearnedFactors } from "../../context/learned.ts";
import type { ModelLimits } from "../../context/model-limits.ts";
import type { ModelMessages } from "../../context/model-messages.ts";
import type { OverflowPolicy } from "../../context/overflow.ts";
import type { Converted } from "../../context/measure.ts";
import type { TokenCounters } from "../../context/token-counters.ts";
import type { ContextReader } from "../../context/view.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Payers } from "../../ledger/ledger.ts";
import type { Usage } from "../../ledger/token-usage.ts";
import type { MediaRestore } from "../../media/media-restore.ts";
import type { ContextBlocks } from "../../memory/context-blocks.ts";
import type { UIMessage } from "../../message/types.ts";
import type { RequestBook } from "../../model/request-book.ts";
import { classifyProviderError } from "../../model/provider-error.ts";
import type { AgentHost } from "../../port.ts";
import type { SessionSearch } from "../../search/search.ts";
import type { SessionManager } from "../../session/session-manager.ts";
import type { SessionSettings } from "../../session/session.ts";
import type { BackgroundRow } from "../../store/background-call.ts";
import type { TurnRow } from "../../store/turn.ts";
import type { ChatErrorClassification } from "../../store/usage.ts";
import type { ActionAuthorization } from "../../tool/action-authorize.ts";
import type { ActionBinding } from "../../tool/action-run.ts";
import type { CallBook } from "../../tool/call-book.ts";
import type { CallOutcome } from "../../tool/runner.ts";
import type { ChatBackground, Engine } from "../engine/engine.ts";
import type { AskedTurn, StepPolicy, Watchers } from "../policy.ts";
import type { ChatClassifyContext, TurnConfig } from "./config.ts";

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
export interface StepBackground extends ChatBackground {
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
  /** Gives a tool that another one calls its agent, where it needs one. */
  bind(name: string, tool: Tool): Tool;
}

/** A request that was sent to a model, to show what fills its window. */
export interface SentRequest {
  readonly session: string;
  /** `provider/modelId` */
  readonly model: string;
  readonly instructions: Instructions | undefined;
  readonly tools: ToolSet;
  readonly messages: readonly ModelMessage[];
  readonly maxOutputTokens: number | undefined;
  /** What the provider counted. */
  readonly usage: Usage | undefined;
}

/** What the step loop needs to keep conversations within the windows of models. */
export interface ContextWindow {
  readonly reader: ContextReader;
  readonly compactor: Compactor;
  readonly background: BackgroundWork;
  readonly counters: TokenCounters;
  readonly learned: LearnedFactors;
  /** What is done when a conversation grows too long; undefined: nothing. @throws PerdureError `bad_config` */
  policy(): OverflowPolicy | undefined;
  /** @throws PerdureError `bad_config` */
  limits(model: string): ModelLimits;
  /** The model that summarises; undefined: the one that reads the summary. */
  summariser(): Promise<LanguageModel | undefined>;
  settings(session: string): Promise<SessionSettings>;
  /** What is true now and must not depend on a summary. */
  live(session: string): LiveState;
  /** Messages as a model (`provider/modelId`) is shown them: no output is too long for it. @throws PerdureError `bad_config` */
  bounded(model: string, messages: readonly ModelMessage[]): ModelMessage[];
  /** The message that one of {@link ContextWindow.bounded} is shown in the place of. */
  original(message: ModelMessage): ModelMessage;
  /** A request was answered. Must be quick, must not throw. */
  sent(request: SentRequest): void;
}

/** What server code brought along for one turn. In memory: after a restart it is gone. */
export interface BroughtAlong {
  readonly tools?: ToolSet | undefined;
  readonly config?: TurnConfig | undefined;
}

/** What the turns of an agent that run step by step are made of, and share. */
export interface StepParts {
  readonly policy: StepPolicy;
  /** The policy that says nothing: a class that has its hooks is not asked. */
  readonly silent: StepPolicy;
  readonly host: AgentHost;
  readonly chat: Engine;
  readonly sessions: SessionManager;
  readonly ledger: Ledger;
  readonly book: CallBook;
  /** Writes down what models are sent. */
  readonly requests: RequestBook;
  readonly search: SessionSearch;
  /** Keeps conversations within the windows of models. */
  readonly window: ContextWindow;
  /** Calls that go on without their turn. */
  readonly background: StepBackground;
  /** What is built in, and what others bring: files, skills, extensions, MCP servers. */
  readonly kit: {
    ofTurn(
      others: readonly string[],
      blocks: ContextBlocks | undefined,
      resumes: boolean,
    ): Promise<{ readonly prompt: string; readonly tools: ToolSet }>;
    /** Extensions that hear of turns. */
    readonly watchers: Watchers | undefined;
  };
  /** What actions ask of the agent, in a turn or outside. */
  actionBinding(turn?: { readonly id: string; readonly grants: () => ActionAuthorization }): ActionBinding;
  /** Stored messages as models read them. */
  readonly messages: ModelMessages;
  readonly media: MediaRestore;
  /** By turn. */
  readonly brought: Map<string, BroughtAlong>;
  /** Who pays for a turn besides the agent; undefined when it is taken for nobody else. */
  payers(turn: number): Payers | undefined;
  /** Loads a file for a model that cannot do it itself. */
  loadFile(file: { url: URL; abortSignal?: AbortSignal }): Promise<{ data: Uint8Array; mediaType: string | undefined }>;
  /** A file cannot be loaded for the model. Never throws. */
  fileLost(url: string, error: unknown): void;
  /** Keeps a tool's whole output and says where; undefined when it cannot. */
  keep(text: string): Promise<string | undefined>;
}

/** A turn, whether it runs or is over, as the app is asked about it. */
export function askedTurn(parts: StepParts, id: string, identity: Identity | undefined): AskedTurn {
  const { policy, silent, kit, chat } = parts;
  return {
    ...{ id, policy, silent },
    get watchers() {
      return kit.watchers;
    },
    as: (work) => chat.agent.as(work, id, identity),
    failed: (error) => chat.agent.failed(error, { stage: "hook", requestId: id }),
  };
}

/** The conversation as the model reads it, with what was taken out of messages. Run it as the agent. */
export async function assemble(
  { policy, media }: Pick<StepParts, "policy" | "media">,
  messages: readonly UIMessage[],
  tools: ToolSet,
): Promise<ModelMessage[]> {
  return policy.assembleContext({ messages: await media.of(messages), tools });
}

/** What stored messages become, each apart, whatever the agent makes of them all. */
export async function shownApart(
  { media, messages }: Pick<StepParts, "media" | "messages">,
  stored: readonly UIMessage[],
  tools: ToolSet,
): Promise<Converted[]> {
  const whole = await media.of(stored);
  const converted = await messages.each(whole, tools);
  return whole.map((message, at) => ({ whole: message, converted: converted[at] ?? [] }));
}

/** Of an error outside a turn. */
const OUTSIDE: ChatClassifyContext = {
  ...{ stage: "stream", requestId: undefined, identity: undefined, messagesPersisted: true },
  ...{ classification: undefined, partial: undefined },
};

/** What kind of error a model gave. Run it as the agent. */
export async function classify(
  { policy }: Pick<StepParts, "policy">,
  error: unknown,
  context: ChatClassifyContext = OUTSIDE,
): Promise<ChatErrorClassification> {
  return (await policy.classifyChatError(error, context)) ?? classifyProviderError(error);
}
