import type { UIMessage, UIMessageChunk } from "../message/types.ts";
import type { TurnOutcome } from "../wire/frames.ts";
import type { BackgroundState, CompactionMark, ContextState, SessionState } from "../wire/session-frames.ts";
import type { BranchPlace } from "./branch-places.ts";
import type { ChatBodySource, ChatTrigger } from "./chat-request.ts";
import type { ToolHandlers } from "./tool-runner.ts";

/** As of the AI SDK: a request is on its way, is being answered, nothing is under way, or it failed. */
export type ChatStatus = "submitted" | "streaming" | "ready" | "error";

/** What there is to show of a chat. A new object whenever something changed; messages that did not change stay. */
export interface ChatSnapshot {
  readonly messages: UIMessage[];
  readonly status: ChatStatus;
  readonly error: Error | undefined;
  /** A turn that was not asked for here streams, or a tool runs here. */
  readonly isServerStreaming: boolean;
  /** Something streams. */
  readonly isStreaming: boolean;
  /** The server carries on a turn that was cut off. */
  readonly isRecovering: boolean;
  /** What is under way goes on with an answer because a tool call was answered here. */
  readonly isToolContinuation: boolean;
  /** It is known what was said: an empty list means that nothing was. */
  readonly isLoaded: boolean;
  /** More was said before the first of `messages`; `loadOlder` brings it. */
  readonly hasOlder: boolean;
  readonly isLoadingOlder: boolean;
  /** The session that this client is in; undefined until it is told. */
  readonly session: SessionState | undefined;
  /** Which of the messages in its place one is; undefined when it is the only one. Another function after each change. */
  readonly branches: (messageId: string) => BranchPlace | undefined;
  /** Up to where the model reads summaries, the newest last. */
  readonly compactions: readonly CompactionMark[];
  /** How much of the model's window is taken; null when the agent does not know. */
  readonly contextState: ContextState | null;
  /** Ids of messages that the model reads word by word, whatever is summarised. */
  readonly pins: readonly string[];
  /** Tool calls that go on without their turns; `stopCall` stops one. */
  readonly backgroundCalls: readonly BackgroundState[];
}

/** How a turn ended. */
export interface TurnEnd {
  readonly requestId: string;
  /** The user's messages that it answers. */
  readonly messageIds?: readonly string[];
  readonly outcome: Exclude<TurnOutcome, "recovering">;
  readonly error?: string;
  /** Heard of after a reconnect, not as it happened. */
  readonly replay: boolean;
}

/** A chunk with data of the app. With the type of the messages, its type tells its data. */
export type DataChunk<M extends UIMessage = UIMessage> = UIMessage extends M
  ? Extract<UIMessageChunk, { type: `data-${string}` }>
  : Extract<M["parts"][number], { type: `data-${string}` }> & { readonly transient?: boolean };

/** Who listens to a chat. None may throw; slow ones hold up what comes next. */
export interface ChatHandlers<M extends UIMessage = UIMessage> extends ToolHandlers<M> {
  /** Data of the app, also such that is not kept, of every turn. */
  readonly onData?: (part: DataChunk<M>) => void;
  /** A turn that was asked for here failed. */
  readonly onError?: (error: Error) => void;
  /** An answer is complete. */
  readonly onFinish?: (end: {
    readonly message: M;
    readonly messages: M[];
    readonly isAbort: boolean;
    readonly isError: boolean;
  }) => void;
  /** Whether to ask the agent to go on, after an answer and after each result. */
  readonly sendAutomaticallyWhen?: (chat: { messages: M[] }) => boolean | PromiseLike<boolean>;
  /** Once for every turn that ends, also those of others. May send the next message. */
  readonly onTurnEnd?: (end: TurnEnd) => void;
}

/** What goes along with requests. */
export interface RequestSettings<M extends UIMessage = UIMessage> extends Pick<ToolHandlers, "tools"> {
  /** Data for the agent. */
  readonly body?: ChatBodySource;
  /** More data, by what is asked. Wins over `body`; what a single message brings wins over both. */
  readonly prepareSendMessagesRequest?: (request: {
    readonly id: string;
    readonly messages: M[];
    readonly trigger: ChatTrigger;
    readonly messageId: string | undefined;
    readonly body: Record<string, unknown> | undefined;
  }) => { readonly body?: object } | Promise<{ readonly body?: object }>;
}

/** What one message or regenerate brings along. */
export interface SendOptions {
  readonly body?: object;
}
