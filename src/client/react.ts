// Hooks for React. Everything else of clients is in `perdure/client`.

export { useAgent, type UseAgentOptions } from "./use-agent.ts";
export { type ChatAgent, useAgentChat, type UseAgentChat, type UseAgentChatOptions } from "./use-agent-chat.ts";
export {
  useAgentToolEvents,
  type UseAgentToolEvents,
  type UseAgentToolEventsOptions,
} from "./use-agent-tool-events.ts";
export type { AgentToolEventSource } from "./agent-tool-events.ts";
export type {
  AgentToolEventState,
  AgentToolMilestone,
  AgentToolProgress,
  AgentToolRunPart,
  AgentToolRunState,
} from "./agent-tool-types.ts";
export type { AgentClient, AgentClientOptions } from "./agent-client.ts";
export { type AgentMessagesOptions, getAgentMessages } from "./agent-messages.ts";
export type { ChatInput } from "./chat-input.ts";
export {
  type AITool,
  type ChatBodySource,
  type ChatTool,
  clientToolsOf as extractClientToolSchemas,
} from "./chat-request.ts";
export type { Part, UIMessage } from "../message/types.ts";
export type { ChatStatus, DataChunk, SendOptions, TurnEnd, TurnEnd as ChatTurnEndEvent } from "./chat-types.ts";
export { AgentConnectionError } from "./connection-error.ts";
export {
  getToolApproval,
  getToolCallId,
  getToolInput,
  getToolOutput,
  getToolPartState,
  type ToolPartState,
} from "./tool-part.ts";
export { useSessions, type UseSessions, type UseSessionsOptions } from "./use-sessions.ts";
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
export type { OnToolCall, OnToolCall as OnToolCallCallback, ToolCall, ToolOutput } from "./tool-runner.ts";
export type { TurnOutcome as ChatTurnOutcome } from "../wire/frames.ts";
