import type { LanguageModel, ModelMessage, ToolSet } from "ai";
import { errorText } from "../base/error.ts";
import type { Identity } from "../base/identity.ts";
import type { LiveState } from "../context/carried.ts";
import type { ModelLimitsTable } from "../context/model-limits.ts";
import type { ContextOverflow } from "../context/overflow.ts";
import type { TextCounter } from "../context/token-counters.ts";
import type { Budgets } from "../ledger/budget.ts";
import type { PriceTable } from "../ledger/prices.ts";
import type { Part, ToolPart, UIMessage } from "../message/types.ts";
import { describeProviderError, describeTurnError } from "../model/provider-error.ts";
import type { ChatErrorClassification } from "../store/usage.ts";
import type { AboutFailure, AgentHost, Socket } from "../port.ts";
import type { ReplyAttachment } from "../tool/action-attachment.ts";
import type { ActionAuthorization, ActionAuthorizationContext } from "../tool/action-authorize.ts";
import type { AnyAction } from "../tool/action.ts";
import type {
  ToolCallContext,
  ToolCallDecision,
  ToolCallResultContext,
  ToolResultDecision,
} from "../tool/call-hooks.ts";
import type { ChatAnswer, OrdinaryTurn } from "./engine/by-stream.ts";
import type { ChannelHooks } from "./step/channels.ts";
import type {
  ChatClassifyContext,
  ChatErrorContext,
  ChatTurnOptions,
  ChunkContext,
  OfTurn,
  PrepareStepContext,
  SentAlong,
  StepConfig,
  StepContext,
  TurnConfig,
  TurnContext,
} from "./step/config.ts";

type Maybe<T> = T | Promise<T>;
/** What a hook may say, or not. */
type Said<T> = Maybe<T | void>;

/** Who asked; undefined for the server itself. */
export type Origin = Socket | undefined;

/**
 * What becomes of a message that is sent while a turn is running or waiting.
 *
 * - `queue`: it gets its own turn, after the others.
 * - `latest`: turns that wait are passed over; their messages stay and are answered together with this one.
 * - `merge`: like `latest`, and the messages that waited become one.
 * - `drop`: it is refused, and nothing is stored.
 * - `debounce`: like `latest`, after a pause in which nothing more was sent.
 * - `steer`: the running turn takes it in before its next step; without one it is as `queue`, as it always is for `AIChatAgent`.
 */
export type MessageConcurrency =
  | "queue"
  | "latest"
  | "merge"
  | "drop"
  | "debounce"
  | "steer"
  | { readonly strategy: "debounce"; readonly debounceMs?: number };

/** How a turn ended. */
export type TurnOutcome = "completed" | "error" | "aborted" | "skipped";

/** What `onChatResponse` is told. */
export interface ChatResponseResult extends OfTurn {
  readonly status: TurnOutcome;
  readonly continuation: boolean;
  /** The answer as it is stored; undefined when there was none. */
  readonly message: UIMessage | undefined;
  readonly error?: string;
  /** What actions have delivered beside the answer, for whoever passes it on. */
  readonly attachments: readonly ReplyAttachment[];
  /** What came of the turn's structured `output`. */
  readonly output?: unknown;
}

/** What `saveMessages` resolves with. */
export interface SaveMessagesResult<OUTPUT = unknown> {
  readonly requestId: string;
  readonly status: TurnOutcome;
  readonly error?: string;
  /** What came of the turn's structured `output`. */
  readonly output?: OUTPUT;
}

/** A turn that was cut off, as `onChatRecovery` sees it. */
export interface ChatRecoveryContext extends OfTurn, SentAlong {
  /** Names this interruption: the turn, and which time it was. */
  readonly incidentId: string;
  /** From 1: how often this turn has been carried on. Never goes back. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** `continue`: part of an answer is there. `retry`: nothing is. */
  readonly recoveryKind: "continue" | "retry";
  readonly partialText: string;
  readonly partialParts: UIMessage["parts"];
  /** Milliseconds since the turn was first started. */
  readonly ageMs: number;
  /** What the turn has stored with `stash()`; null when it has stored nothing. */
  readonly recoveryData: unknown;
  readonly messages: readonly UIMessage[];
}

/** What to do with a turn that was cut off. */
export interface ChatRecoveryOptions {
  /** Keep the part of the answer that is there. Default true. */
  readonly persist?: boolean;
  /** Carry the turn on. Default true. */
  readonly continue?: boolean;
}

/** Bounds for carrying on cut turns, stored before each try. Any new part of the answer resets those on progress, no others. */
export interface ChatRecoveryConfig {
  /** Default 10. */
  readonly maxAttempts?: number;
  /** Since the turn was first started. Default 1 h. */
  readonly maxAgeMs?: number;
  /** Tries in a row that brought nothing new. Default: as many as there are tries. */
  readonly maxNoProgressAttempts?: number;
  /** Since the first try to carry on after the last new chunk. Time that the host was down before it does not count. Default 5 min. */
  readonly noProgressTimeoutMs?: number;
  /** Asked from the second try on; false gives up. Must be quick. */
  readonly shouldKeepRecovering?: (context: ChatRecoveryContext) => boolean | Promise<boolean>;
  /** What the user reads when it is given up. */
  readonly terminalMessage?: string;
  /** After it was given up. */
  readonly onExhausted?: (context: ChatRecoveryContext) => void | Promise<void>;
}

/** A call that waits for a person, as `authorizeApproval` is told of it. */
export interface ApprovalCall {
  readonly toolCallId: string;
  /** What would run: of a call that asks in the middle of its work, the tool that it asks about. */
  readonly toolName: string;
  readonly input: unknown;
  /** The words of the question, if it has any. */
  readonly summary?: string;
  /** The answer that the call is in. */
  readonly messageId: string;
  readonly sessionId: string;
  /** For whom the turn is that wants to make the call. */
  readonly requestedBy?: Identity;
}

/** What `authorizeApproval` decides on. */
export interface ApprovalRequest {
  readonly call: ApprovalCall;
  /** Who answers, as the app established it; undefined when it did not say. */
  readonly identity: Identity | undefined;
  /** What the answer says. */
  readonly approved: boolean;
}

/** What the app decides about its turns: its class, by the names that users override. Read or called when needed. */
export interface TurnPolicy {
  /** What becomes of messages that are sent while a turn is under way. */
  readonly messageConcurrency: MessageConcurrency;
  /** Of how many sessions turns run at once. */
  readonly maxConcurrentTurns: number;
  readonly maxPersistedMessages: number | undefined;
  /** `false`: a turn that was cut off is not carried on. */
  readonly chatRecovery: ChatRecoveryConfig | boolean;
  /** 0: never. */
  readonly chatStreamStallTimeoutMs: number;
  readonly maxToolCallsPerStep: number;
  /** 0: never. */
  readonly approvalTimeoutMs: number;
  /** `false`: sessions are not named after what is said in them. */
  readonly titles: boolean | object;
  /** Before a message is stored. Must be quick; a throw fails the write. */
  sanitizeMessageForPersistence(message: UIMessage): UIMessage;
  /** Nothing, and after a throw, which is reported: the turn is carried on, with what there is of it. */
  onChatRecovery(context: ChatRecoveryContext): Said<ChatRecoveryOptions>;
  /** After the end is stored, in order per session. Only watches. */
  onChatResponse(result: ChatResponseResult): Said<undefined>;
  /** Only `true` allows the answer; a throw is reported, and refuses. */
  authorizeApproval(request: ApprovalRequest): Maybe<boolean>;
  /** What the user reads of an error; the error itself: a plain explanation. A throw is reported, and says nothing. */
  onChatError?(error: unknown, context: ChatErrorContext): unknown;
}

/** The agent whose turns they are: how code of it is called, and who hears of what goes wrong. */
export interface TurnAgent {
  /** Runs work as the agent: in a turn and for whom it is, if they are given. */
  as<T>(work: () => T, turn?: string, identity?: Identity): T;
  /** Runs what a turn sets going once it is over, or was cut: what that asks for comes of the turn. */
  after<T>(turn: { readonly requestId: string; readonly identity?: Identity }, work: () => T): T;
  /** Something failed that no caller waits for. Must not throw. */
  failed(error: unknown, about?: Partial<AboutFailure>): void;
  /** `repairInterruptedToolPart`, which only the class itself may call: what stands in the place of a call that was cut off. */
  repair(part: ToolPart, message: UIMessage): Part;
  /** What somebody is called who answers a question. */
  approver(origin: Origin, identity: Identity | undefined): string | undefined;
  /** The cause of a turn of code, as stored; null: none. @param counted false: bounded elsewhere @throws PerdureError `limit` */
  admit(counted: boolean): string | null;
  /** A turn is over, however it ended. Must not throw. */
  over(turnId: string): void;
}

/**
 * What the app says about turns that run step by step, read or called when needed. Hooks may be slow; one that throws ends the
 * turn, except `beforeToolCall` (fails that call), `afterToolCall` (withholds the result) and those that only watch. Around a
 * crash a watching hook may be called twice for the same thing, or not at all.
 */
export interface StepPolicy extends TurnPolicy, ChannelHooks {
  readonly sendReasoning: boolean;
  readonly budgets: Budgets;
  readonly prices: PriceTable;
  readonly contextOverflow: ContextOverflow | boolean;
  readonly modelLimits: ModelLimitsTable;
  readonly actionLedgerPendingRetryLeaseMs: number | boolean;
  readonly maxBackgroundCalls: number;
  getModel(): Maybe<LanguageModel | readonly LanguageModel[]>;
  getSystemPrompt(): Maybe<string>;
  getTools(): Maybe<ToolSet>;
  getActions(): Maybe<Record<string, AnyAction>>;
  getMaxSteps(): number;
  assembleContext(context: { readonly messages: readonly UIMessage[]; readonly tools: ToolSet }): Maybe<ModelMessage[]>;
  getCompactionModel(): Maybe<LanguageModel | undefined>;
  countTokens(model: string): TextCounter | undefined;
  getLiveState(): LiveState;
  beforeTurn(context: TurnContext): Said<TurnConfig>;
  authorizeTurn(context: TurnContext): Maybe<ActionAuthorization>;
  authorizeAction(context: ActionAuthorizationContext): Said<ActionAuthorization>;
  beforeStep(context: PrepareStepContext): Said<StepConfig>;
  beforeToolCall(context: ToolCallContext): Said<ToolCallDecision>;
  /** Asked before anybody is shown a result. */
  afterToolCall(context: ToolCallResultContext): Said<ToolResultDecision>;
  /** Only watches, and so do the two below. */
  onStepFinish(context: StepContext): Said<undefined>;
  onStepEnd(context: StepContext): Said<undefined>;
  onChunk(context: ChunkContext): Said<undefined>;
  onChatError(error: unknown, context: ChatErrorContext): unknown;
  /** An answer to be streamed instead of steps; after a crash it is asked again. */
  onChatMessage(options: ChatTurnOptions): Maybe<ChatAnswer | OrdinaryTurn | undefined>;
  /** Nothing: it is recognised by its status and text. */
  classifyChatError(error: unknown, context: ChatClassifyContext): Said<ChatErrorClassification>;
}

/** Others who hear of a turn, after the class or beside it. They report what goes wrong themselves. */
export interface Watchers {
  listens(hook: "beforeTurn" | "beforeToolCall" | "afterToolCall" | "onStepFinish" | "onChunk"): boolean;
  /** They may wish for settings of a turn; what the class says counts more. */
  beforeTurn(context: TurnContext): Promise<TurnConfig | undefined>;
  beforeToolCall(context: ToolCallContext): Promise<void>;
  afterToolCall(context: ToolCallResultContext): Promise<void>;
  onStepFinish(context: StepContext): Promise<void>;
  onChunk(context: ChunkContext): void;
}

/** A turn that the app is asked about, whether it runs or is over. */
export interface AskedTurn {
  readonly id: string;
  readonly policy: StepPolicy;
  /** The policy that says nothing: a class that has its hooks is not asked. */
  readonly silent: StepPolicy;
  /** Undefined where there are none. May change from turn to turn. */
  readonly watchers: Watchers | undefined;
  /** Runs a hook as the agent, in this turn. */
  as<T>(work: () => T): T;
  /** Reports what went wrong in code of the app. Must not throw. */
  failed(error: unknown): void;
}

/** Whether the class has something to say: where it has not, nothing need be found out for it. */
export function isAsked<POLICY extends TurnPolicy>(
  { policy, silent }: { readonly policy: POLICY; readonly silent: POLICY },
  hook: keyof POLICY,
): boolean {
  return policy[hook] !== silent[hook];
}

/** Whether anybody listens. */
export function isHeard(turn: AskedTurn, hook: "onStepFinish" | "onChunk"): boolean {
  const isOwn = isAsked(turn, hook) || (hook === "onStepFinish" && isAsked(turn, "onStepEnd"));
  return isOwn || turn.watchers?.listens(hook) === true;
}

/** Asks the class, as the agent and in that turn; then watchers hear of it. Nothing where nobody listens. */
export async function ask<HOOK extends "beforeStep" | "beforeToolCall" | "afterToolCall">(
  turn: AskedTurn,
  hook: HOOK,
  context: Parameters<StepPolicy[HOOK]>[0],
): Promise<Awaited<ReturnType<StepPolicy[HOOK]>>> {
  const { policy } = turn;
  const asked = policy[hook] as (context: unknown) => ReturnType<StepPolicy[HOOK]>;
  const said = isAsked(turn, hook) ? await turn.as(() => Reflect.apply(asked, policy, [context])) : undefined;
  // Of a result they are told when it is shown.
  if (hook === "beforeToolCall" && turn.watchers?.listens(hook) === true)
    await turn.watchers.beforeToolCall(context as ToolCallContext);
  return said as Awaited<ReturnType<StepPolicy[HOOK]>>;
}

/** Asks who only watches. What it throws is reported. */
export async function watch(turn: Pick<AskedTurn, "failed">, work: () => unknown): Promise<void> {
  try {
    await work();
  } catch (thrown) {
    turn.failed(thrown);
  }
}

/** Tells those who only watch. What the class throws is reported. */
export function tell(
  turn: AskedTurn,
  ...[hook, context]:
    | ["onStepFinish", StepContext]
    | ["onChunk", ChunkContext]
    | ["afterToolCall", ToolCallResultContext]
): Promise<void> {
  const { policy } = turn;
  const watchers = turn.watchers?.listens(hook) === true ? turn.watchers : undefined;
  return watch(turn, async () => {
    if (hook === "afterToolCall") return watchers?.afterToolCall(context);
    if (hook === "onChunk") {
      watchers?.onChunk(context);
      if (isAsked(turn, hook)) await turn.as(() => policy.onChunk(context));
      return;
    }
    await watchers?.onStepFinish(context);
    for (const name of ["onStepFinish", "onStepEnd"] as const)
      if (isAsked(turn, name)) await turn.as(() => policy[name](context));
  });
}

/** Reports a failed turn or a refused request. @returns what the user reads, by the class or in plain words. Never throws. */
export async function explain(
  { host, policy, agent }: { readonly host: AgentHost; readonly policy: TurnPolicy; readonly agent: TurnAgent },
  error: unknown,
  context: ChatErrorContext,
): Promise<string> {
  const { requestId, identity, stage, messagesPersisted, classification } = context;
  const cause = stage === "persist" && error instanceof Error ? (error.cause ?? error) : error;
  host.emit("chat:request:failed", { requestId, stage, messagesPersisted, error: errorText(cause) });
  host.report(cause, { stage, requestId });
  let told = error;
  try {
    told = await agent.as(() => policy.onChatError?.(error, context), requestId, identity);
  } catch (thrown) {
    agent.failed(thrown);
  }
  if (told !== error && told !== undefined) return typeof told === "string" ? told : errorText(told);
  return classification === undefined ? describeTurnError(error) : describeProviderError(error, classification);
}
