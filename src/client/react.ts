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
export type { ChatBodySource, ChatTool } from "./chat-request.ts";
export type { Part, UIMessage } from "../message/types.ts";
export type { ChatStatus, DataChunk, SendOptions, TurnEnd } from "./chat-types.ts";
export { AgentConnectionError } from "./connection-error.ts";
export {
  getToolApproval,
  getToolCallId,
  getToolInput,
  getToolOutput,
  getToolPartState,
  type ToolPartState,
} from "./tool-part.ts";
export type { OnToolCall, ToolCall, ToolOutput } from "./tool-runner.ts";
