import type { ToolPart, UIMessage } from "../message/types.ts";
import type { AgentToolEventFrame } from "./agent-tool-frames.ts";
import type { JsonObject } from "./json.ts";
import type { RowErrorFrame, RowReceiptFrame } from "./row-frames.ts";
import type {
  SessionRequestFrame,
  SessionResultFrame,
  SessionsChangedFrame,
  SessionStateFrame,
} from "./session-frames.ts";

/* Every frame is one JSON object in one text frame, with the public clients' names. Unneeded fields are absent, not null. */

/** A tool that runs in the client. */
export interface ClientTool {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the input. */
  readonly parameters?: JsonObject;
}

/** How a turn ended, as the client's `onTurnEnd` sees it. */
export type TurnOutcome = "completed" | "error" | "aborted" | "skipped" | "recovering";

// ---- both directions

/** The whole state of the agent, never a patch. To the server: please store it. To the client: it is now this. */
interface StateFrame {
  readonly type: "cf_agent_state";
  readonly state: unknown;
}

/** Empty the chat. To the server: do it. To the other clients: it was done. */
export interface ChatClearFrame {
  readonly type: "cf_agent_chat_clear";
}

// ---- client to server

/** Call a method. Answered by {@link RpcResultFrame}s or one {@link RpcErrorFrame} on the same connection. */
interface RpcCallFrame {
  readonly type: "rpc";
  readonly id: string;
  readonly method: string;
  readonly args: readonly unknown[];
}

/** Start a turn. The body is JSON text; `ChatBody` says what is in it. */
export interface ChatRequestFrame {
  readonly type: "cf_agent_use_chat_request";
  readonly id: string;
  readonly init: { readonly method: "POST"; readonly body: string };
}

/** The client edited its list by hand (`setMessages`). */
export interface TranscriptPushFrame {
  readonly type: "cf_agent_chat_messages";
  readonly messages: readonly UIMessage[];
}

/** Stop a turn. May come twice, and for turns of other tabs. */
export interface ChatCancelFrame {
  readonly type: "cf_agent_chat_request_cancel";
  readonly id: string;
}

/** Is anything streaming? Must be answered at once, with the same `probeId`. */
export interface ResumeRequestFrame {
  readonly type: "cf_agent_stream_resume_request";
  readonly probeId?: string;
}

/** Send me that stream from its start. */
export interface ResumeAckFrame {
  readonly type: "cf_agent_stream_resume_ack";
  readonly id: string;
}

/** What a client-side tool gave, or how it failed. */
export interface ToolResultFrame {
  readonly type: "cf_agent_tool_result";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly output?: unknown;
  readonly state?: "output-available" | "output-error";
  readonly errorText?: string;
  readonly autoContinue?: boolean;
  readonly clientTools?: readonly ClientTool[];
}

/** The user's answer to a request for approval. */
export interface ToolApprovalFrame {
  readonly type: "cf_agent_tool_approval";
  readonly toolCallId: string;
  readonly approved: boolean;
  readonly autoContinue?: boolean;
  /** The question that it answers: then it is none to another one of the same call. */
  readonly approvalId?: string;
  /** Of the tool and its input, as they were shown: then it is no answer to others. */
  readonly digest?: string;
}

/** Stop a call that goes on without its turn. */
interface ToolStopFrame {
  readonly type: "perdure_tool_stop";
  readonly toolCallId: string;
}

/** Send me what was said before. See `history.ts`. */
interface OlderRequestFrame {
  readonly type: "perdure_chat_older";
  readonly before: number;
}

/** Everything that clients send. */
export type ClientFrame =
  | StateFrame
  | RpcCallFrame
  | ChatRequestFrame
  | TranscriptPushFrame
  | ChatClearFrame
  | ChatCancelFrame
  | ResumeRequestFrame
  | ResumeAckFrame
  | ToolResultFrame
  | ToolApprovalFrame
  | ToolStopFrame
  | OlderRequestFrame
  | SessionRequestFrame;

// ---- server to client

/** Who is here: kebab class and name, of the leaf for children. Sent on every connect. */
interface IdentityFrame {
  readonly type: "cf_agent_identity";
  readonly name: string;
  readonly agent: string;
  /** Exactly when a {@link StateFrame} follows: the client is not ready before it. */
  readonly stateFollows?: true;
}

/** The state that this client pushed was not taken. */
interface StateErrorFrame {
  readonly type: "cf_agent_state_error";
  readonly error: string;
}

/** The MCP servers of the agent and what they offer. Sent on connect, also when empty, and on change. */
interface McpServersFrame {
  readonly type: "cf_agent_mcp_servers";
  readonly mcp: McpState;
}

export interface McpState {
  readonly servers: { readonly [id: string]: McpServerState };
  readonly tools: readonly unknown[];
  readonly prompts: readonly unknown[];
  readonly resources: readonly unknown[];
}

export interface McpServerState {
  readonly name: string;
  readonly server_url: string;
  readonly auth_url: string | null;
  readonly state: "not-connected" | "authenticating" | "connecting" | "connected" | "discovering" | "ready" | "failed";
  readonly error: string | null;
  readonly instructions: string | null;
  readonly capabilities: unknown;
}

/** A result, or with `done: false` one piece of a streamed one. */
interface RpcResultFrame {
  readonly type: "rpc";
  readonly id: string;
  readonly success: true;
  readonly result?: unknown;
  readonly done?: boolean;
}

/** The call failed; nothing more comes for it. */
interface RpcErrorFrame {
  readonly type: "rpc";
  readonly id: string;
  readonly success: false;
  readonly error: string;
}

/** One chunk of a turn, its end or its error. Exactly one frame with `done: true` per turn. */
export interface ChatResponseFrame {
  readonly type: "cf_agent_use_chat_response";
  /** The id of the request; made by the server for turns that no client asked for. */
  readonly id: string;
  /** JSON text of a chunk, text of an error, or `""`. Never an object. */
  readonly body: string;
  readonly done: boolean;
  /** Ends the turn for the client, by itself. */
  readonly error?: true;
  /** On every frame of a stream that adds to the last answer, live and replayed. */
  readonly continuation?: true;
  readonly replay?: true;
  /** The replay has caught up; live chunks follow. */
  readonly replayComplete?: true;
  /** Index of the chunk in the stored log, from 0. Absent for chunks that are not stored. */
  readonly seq?: number;
  /** Ids of the user messages that the turn answers. */
  readonly messageIds?: readonly string[];
  readonly outcome?: TurnOutcome;
}

/** The whole transcript; replaces the client's list. */
export interface TranscriptFrame {
  readonly type: "cf_agent_chat_messages";
  readonly messages: readonly UIMessage[];
  /** Must mark the one sent on connect: it does not know what was typed while offline. */
  readonly connect?: true;
  /** Only for clients that want pages: these are the newest messages, and there are older ones. See `history.ts`. */
  readonly before?: number;
  /** Only for them: where these messages stand among others in the same place, as `[index, count]` by id. */
  readonly branches?: BranchPlaces;
  /** Only for them, with `connect`: the session that it is. */
  readonly session?: string;
}

/** Messages that are not the only ones of their place: which of how many, from 0. */
export type BranchPlaces = { readonly [messageId: string]: readonly [index: number, count: number] };

/** What was said before the message numbered `before`, oldest first; `next` asks for what was said before that. */
export interface OlderFrame {
  readonly type: "perdure_chat_older";
  readonly before: number;
  readonly messages: readonly UIMessage[];
  readonly next?: number;
  readonly branches?: BranchPlaces;
}

/** One message changed (a tool result or an approval came in). Never adds a message. */
export interface MessageUpdatedFrame {
  readonly type: "cf_agent_message_updated";
  readonly message: UIMessage;
}

/**
 * To clients with pages, outside the edit's session: the message they know as `from` was edited elsewhere. They show the older
 * version, now called `to`.
 */
interface MessageRenamedFrame {
  readonly type: "perdure_message_renamed";
  readonly from: string;
  readonly to: string;
}

/** Whoever answered a question for approval may not: it is still open. Only for that connection. */
interface ApprovalRefusedFrame {
  readonly type: "perdure_chat_approval_refused";
  readonly toolCallId: string;
  readonly reason: string;
  /** The call as it is: a part of its message. */
  readonly part?: ToolPart;
}

/** Offer of a stream. The connection gets no live chunks until it sends {@link ResumeAckFrame}. */
export interface StreamResumingFrame {
  readonly type: "cf_agent_stream_resuming";
  readonly id: string;
  /** Only on the direct answer to a request. */
  readonly probeId?: string;
}

/** Nothing to resume. `idle` only when nothing is active, pending or recoverable. */
export interface StreamResumeNoneFrame {
  readonly type: "cf_agent_stream_resume_none";
  readonly reason?: "idle" | "continuation-owned";
  readonly probeId?: string;
}

/** A turn was accepted and has not started; holds the client's question open for a minute. */
export interface StreamPendingFrame {
  readonly type: "cf_agent_stream_pending";
  readonly id?: string;
  readonly probeId?: string;
}

/** An interrupted turn is being carried on, or no longer is. */
export interface ChatRecoveringFrame {
  readonly type: "cf_agent_chat_recovering";
  readonly recovering: boolean;
  readonly id?: string;
}

/** Everything that we send to the public clients. */
export type ServerFrame =
  | IdentityFrame
  | StateFrame
  | StateErrorFrame
  | McpServersFrame
  | RpcResultFrame
  | RpcErrorFrame
  | ChatResponseFrame
  | TranscriptFrame
  | OlderFrame
  | SessionResultFrame
  | SessionStateFrame
  | SessionsChangedFrame
  | ChatClearFrame
  | MessageUpdatedFrame
  | MessageRenamedFrame
  | ApprovalRefusedFrame
  | StreamResumingFrame
  | StreamResumeNoneFrame
  | StreamPendingFrame
  | ChatRecoveringFrame
  | AgentToolEventFrame
  | RowReceiptFrame
  | RowErrorFrame;
