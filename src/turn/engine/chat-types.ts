import type { ToolSet } from "ai";
import type { Identity } from "../../base/identity.ts";
import type { Part, ToolPart, UIMessage } from "../../message/types.ts";
import type { AboutFailure, Socket } from "../../port.ts";
import type { SessionChange } from "../../session/session-desk.ts";
import type { TurnRow } from "../../store/turn.ts";
import type { ReplyAttachment } from "../../tool/action-attachment.ts";
import type { ClientTool } from "../../wire/frames.ts";
import type { ChatAnswer, OrdinaryTurn } from "./by-stream.ts";
import type { MessageConcurrency } from "../intake/overlap.ts";
import type { BackgroundCall } from "../step/background-note.ts";
import type { ChatErrorContext } from "../step/config.ts";
import type { StepPlan, TurnOf } from "../step/plan.ts";
import type { LoggedChunk } from "./stream-log.ts";

/** What `onChatMessage` is told about the turn that it answers. */
export interface ChatTurnOptions {
  /** The client's request id, or the server's own for turns that it starts. */
  readonly requestId: string;
  /** The session that it is a turn of. */
  readonly sessionId: string;
  /** For whom it is: who wrote the message that began it, where the app has said who that is. */
  readonly identity?: Identity;
  /** Aborts when the turn is stopped. Hand it to the model call. */
  readonly abortSignal: AbortSignal;
  /** What the client sent along, without what belongs to the protocol. */
  readonly body?: Record<string, unknown>;
  /** Tools that the client runs. */
  readonly clientTools?: readonly ClientTool[];
  /** The answer goes on with the last assistant message instead of starting a new one. */
  readonly continuation: boolean;
}

/** How a turn ended. */
export type TurnOutcome = "completed" | "error" | "aborted" | "skipped";

/** What `onChatResponse` is told. */
export interface ChatResponseResult {
  readonly requestId: string;
  /** The session that it was a turn of. */
  readonly sessionId: string;
  /** For whom it was. */
  readonly identity?: Identity;
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
export interface ChatRecoveryContext {
  readonly requestId: string;
  /** The session that it is a turn of. */
  readonly sessionId: string;
  /** For whom it is. */
  readonly identity?: Identity;
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
  readonly body?: Record<string, unknown>;
  /** Tools that the client runs. */
  readonly clientTools?: readonly ClientTool[];
  readonly messages: readonly UIMessage[];
}

/** What to do with a turn that was cut off. */
export interface ChatRecoveryOptions {
  /** Keep the part of the answer that is there. Default true. */
  readonly persist?: boolean;
  /** Carry the turn on. Default true. */
  readonly continue?: boolean;
}

/**
 * Bounds for carrying on turns that were cut off. They are counted per turn and stored before each try. Those on tries in
 * all and on age are never reset; those on progress are, by anything new that was stored of the answer.
 */
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

/** A person's answer to a question for approval. */
interface ApprovalDecision {
  /** The message that the call is in: providers may use the id of a call again in another one. */
  readonly messageId: string;
  readonly toolCallId: string;
  /** The tool that it calls. */
  readonly tool: string;
  readonly approved: boolean;
  /** Nobody has answered in time: this is a no that nobody said. */
  readonly expired: boolean;
  readonly approver?: string;
  /** Who the approver is, as the app established it. */
  readonly identity?: Identity;
  readonly reason?: string;
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

/** `early`: the client cannot have seen the question yet. `later`: whose the call is will be known when its step is over. */
export type AnswerVerdict = boolean | "early" | "later";

/** What the chat asks of the agent that it belongs to. All may throw; what is thrown ends the turn or is reported. */
export interface ChatHooks {
  /** Answers a turn; or says that it runs step by step, as {@link ChatHooks.plan} says. */
  respond(options: ChatTurnOptions): Promise<ChatAnswer | OrdinaryTurn | undefined>;
  /** How a turn runs step by step, where turns can. */
  plan?(turn: TurnOf): StepPlan;
  /** Whether a turn that was cut off had run step by step. */
  ranInSteps?(turn: TurnRow): boolean;
  /** What somebody is called who answers a question. */
  approver?(origin: Origin, identity: Identity | undefined): string | undefined;
  /** Whether somebody outside may answer a question; a text says why not. Must not throw or reject. */
  authorize?(request: ApprovalRequest): true | string | Promise<true | string>;
  /** What an open question is about, where that is not the call itself. */
  question?(
    messageId: string,
    toolCallId: string,
  ):
    | { readonly tool: string; readonly input: unknown; readonly digest: string; readonly summary: string | null }
    | undefined;
  /**
   * Whether those who talk with the agent may give this call an answer: a result, or a person's decision; undefined: by the
   * rule for all (`mayAnswer`). Must be quick. @param tools of the turn that the call is in, while it runs step by step
   */
  answerable?(
    part: ToolPart,
    messageId: string,
    kind: "result" | "approval",
    isClient: boolean,
    tools: ToolSet | undefined,
  ): AnswerVerdict | undefined;
  /** A question was answered, in the transaction that stores the answer. */
  decided?(decision: ApprovalDecision): void;
  /**
   * What a turn comes of that code asks for, as it is stored; null: of no other. @param counted false: something else bounds it.
   * @throws PerdureError `limit` when it may not be
   */
  admitted?(counted: boolean): string | null;
  /** An attempt of a turn begins, in the transaction that starts it; `attempts` says how many there were before. */
  begun?(turn: TurnRow): void;
  /** A turn is over, however it ended. Must not throw. */
  over?(turnId: string): void;
  /** Whether what a turn is for is still wanted by those above the agent, asked before each attempt. */
  wanted?(turn: TurnRow): Promise<boolean>;
  /** An answer is stored whose calls get no other end, in that transaction. @param turn that has ended with it */
  settled?(message: UIMessage, turn?: TurnRow): void;
  /** An answer is gone from the conversation, for good or into a branch, in the transaction that takes it away. */
  removed?(messageId: string): void;
  /** Tool calls that go on without their turns, where there are such. */
  readonly background?: ChatBackground;
  /** A conversation is forgotten, in the transaction that does it. @param turns of it that run */
  cleared?(session: string, turns: readonly TurnRow[]): void;
  responded(result: ChatResponseResult): void | Promise<void>;
  recover(context: ChatRecoveryContext): ChatRecoveryOptions | void | Promise<ChatRecoveryOptions | void>;
  sanitize(message: UIMessage): UIMessage;
  /** What stands in the place of a call that was cut off. Must not throw. */
  repairToolPart(part: ToolPart, message: UIMessage): ToolPart | Part | undefined;
  /** A turn fails, or a request for one is refused: what the user reads of it. Reports it. Must not throw. */
  explain(error: unknown, context: ChatErrorContext): Promise<string>;
  /** Something failed that no caller waits for. Must not throw. */
  failed(error: unknown, about?: Partial<AboutFailure>): void;
  settings(): ChatSettings;
}

/** Tool calls that go on without their turns, as those outside of the turns deal with them. */
interface ChatBackground {
  /** Those that have not ended, oldest first; of one session and its views, if it is given. */
  list(session?: string): BackgroundCall[];
  /** Stops one for good. False: none of that id goes on there. */
  stop(toolCallId: string, options?: { readonly session?: string; readonly reason?: string }): boolean;
  /** Forgets those that nobody wants any more, in the caller's transaction, and stops them once that is committed. */
  drop(isUnwanted: (call: { readonly messageId: string; readonly session: string }) => boolean): void;
}

/** The class's settings, read when they are needed. */
export interface ChatSettings {
  readonly concurrency: MessageConcurrency;
  /** Of how many sessions turns run at once. */
  readonly maxConcurrentTurns: number;
  readonly maxMessages: number | undefined;
  /** 0: never. */
  readonly stallTimeoutMs: number;
  readonly recovery: ChatRecoveryConfig;
  /** 0: never. */
  readonly approvalTimeoutMs: number;
  /** Of one step. */
  readonly maxToolCalls: number;
  /** Whether sessions are named after what is said in them. Default true. */
  readonly titles?: boolean;
}

/** Who asked; undefined for the server itself. */
export type Origin = Socket | undefined;

/** How a turn's end is told. */
export interface TurnEnd {
  readonly status: TurnOutcome;
  /** For `error`: what the user reads. */
  readonly error?: string;
  /** The model said nothing at all. */
  readonly silent?: boolean;
  /** What came of a structured output. */
  readonly output?: unknown;
}

/** What a request tells of what its sender has. */
export interface ShownByRequest {
  /** The number of the newest answer in it. */
  readonly answer: number | undefined;
  /** Whether it holds anything but what is new. */
  readonly anything: boolean;
  /** Whether messages that waited became part of its own: they are not in the conversation any more. */
  readonly merged: boolean;
}

/**
 * Where the chat's facts go. Called after the commit that they stand on; must not throw. What is told here is all
 * that clients ever see of the chat.
 */
export interface ChatOutput {
  /** A conversation changed, other than by a stream. */
  transcript(session: string, except?: Origin): void;
  /** A request was taken in, and the conversation changed with it. */
  accepted(session: string, origin: Origin, shown: ShownByRequest): void;
  /** The first chunk is about to come: those who wait for it are told. */
  streaming(turn: TurnRow): void;
  chunks(turn: TurnRow, chunks: readonly LoggedChunk[]): void;
  /** The log of a stream is about to be deleted, in the transaction that does it; `read` returns its chunks. */
  closing?(turn: TurnRow, read: () => readonly string[]): void;
  ended(turn: TurnRow, end: TurnEnd, origin: Origin): void;
  /** A turn that was passed over and never ran. */
  skipped(turn: TurnRow, origin: Origin, everyone: boolean): void;
  /** A request whose turn has ended came again. */
  repeated(turn: TurnRow, origin: Origin): void;
  /** A message that was turned away because another turn is under way. Nothing of it was stored. */
  turnedAway(requestId: string, messageIds: readonly string[], origin: Origin): void;
  /** A question came again that `turn` is about to answer: its sender is given that answer. */
  joined(requestId: string, messageIds: readonly string[], turn: TurnRow, origin: Origin): void;
  messageUpdated(session: string, message: UIMessage): void;
  /** A message that `session` does not show any more, but others may, has another id. */
  renamed?(session: string, from: string, to: string): void;
  recovering(turn: TurnRow, value: boolean): void;
  cleared(session: string, origin: Origin): void;
  /** Something happened to a session, other than that somebody spoke in it. */
  sessions?(change: SessionChange): void;
}
