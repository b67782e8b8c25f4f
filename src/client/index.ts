// Clients of agents, for browsers, workers and Node. Nothing of React here: that is `perdure/react`.

export { AgentClient, type AgentClientEvents, type AgentClientOptions } from "./agent-client.ts";
export { agentFetch, type AgentFetchOptions } from "./agent-fetch.ts";
export type { AgentLocation, AgentRef, Query } from "./agent-url.ts";
export type {
  CallArguments,
  CallName,
  CallOptions,
  CallResult,
  CallStream,
  ClientStub,
  StateOf,
  StreamCallbacks,
} from "./call-types.ts";
export { AgentConnectionError, ConnectionCloseEvent } from "./connection-error.ts";
export type { ReconnectOptions, SocketClass } from "./reconnecting-socket.ts";

// Chat
export { AgentChat } from "./agent-chat.ts";
export type { AgentChatOptions } from "./chat-feed.ts";
export type { ChatInput } from "./chat-input.ts";
export type {
  ChatHandlers,
  ChatSnapshot,
  ChatStatus,
  DataChunk,
  RequestSettings,
  SendOptions,
  TurnEnd,
  TurnEnd as ChatTurnEndEvent,
} from "./chat-types.ts";
export type { OnToolCall, OnToolCall as OnToolCallCallback, ToolCall, ToolOutput } from "./tool-runner.ts";
export type { ChatConnection } from "./chat-frames.ts";
export {
  type AITool,
  type ChatBodySource,
  type ChatTool,
  clientToolsOf as extractClientToolSchemas,
} from "./chat-request.ts";
export { AgentSessions, type SessionsSnapshot } from "./agent-sessions.ts";
export type { BranchPlace } from "./branch-places.ts";
export type { BranchStorage } from "./branch-memory.ts";
export type { Branch, ChatSearchOptions } from "./session-chat.ts";
export type { AppliedSummary } from "./session-requests.ts";
export type { CompactionMark, ContextState, SessionState } from "../wire/session-frames.ts";
export type { CompactionInfo } from "../wire/session-types.ts";
export type { DraftCompaction } from "../wire/session-types.ts";
export type { ContextItem, ContextReport, LeftOutItem } from "../wire/session-types.ts";
export type { SearchHit } from "../wire/session-types.ts";
export type { SessionInfo } from "../wire/session-types.ts";
export type { TurnOutcome as ChatTurnOutcome } from "../wire/frames.ts";
export { SocketChatTransport, type SocketChatTransportOptions } from "./socket-chat-transport.ts";
export { HttpChatTransport, type HttpChatTransportOptions } from "./http-chat-transport.ts";
export { type AgentMessagesOptions, getAgentMessages } from "./agent-messages.ts";
export {
  getToolApproval,
  getToolCallId,
  getToolInput,
  getToolOutput,
  getToolPartState,
  type ToolPartState,
} from "./tool-part.ts";

// Runs of child agents
export { AgentToolEvents, type AgentToolEventSource } from "./agent-tool-events.ts";
export type {
  AgentToolEventState,
  AgentToolMilestone,
  AgentToolProgress,
  AgentToolRunPart,
  AgentToolRunState,
} from "./agent-tool-types.ts";

export { PerdureError, type PerdureErrorCode } from "../base/error.ts";
