import type { UIMessage } from "../message/types.ts";
import type {
  ChatCancelFrame,
  ChatClearFrame,
  ChatRecoveringFrame,
  ChatRequestFrame,
  ChatResponseFrame,
  ClientFrame,
  MessageUpdatedFrame,
  ResumeAckFrame,
  ResumeRequestFrame,
  ServerFrame,
  StreamPendingFrame,
  StreamResumeNoneFrame,
  StreamResumingFrame,
  ToolApprovalFrame,
  ToolResultFrame,
  TranscriptFrame,
  TranscriptPushFrame,
} from "./frames.ts";

/** The words of the wire, by the names that the public packages have for them. For code that reads frames itself. */
export const MessageType = {
  CF_AGENT_CHAT_MESSAGES: "cf_agent_chat_messages",
  CF_AGENT_USE_CHAT_REQUEST: "cf_agent_use_chat_request",
  CF_AGENT_USE_CHAT_RESPONSE: "cf_agent_use_chat_response",
  CF_AGENT_CHAT_CLEAR: "cf_agent_chat_clear",
  CF_AGENT_CHAT_REQUEST_CANCEL: "cf_agent_chat_request_cancel",
  CF_AGENT_STREAM_RESUMING: "cf_agent_stream_resuming",
  CF_AGENT_STREAM_RESUME_ACK: "cf_agent_stream_resume_ack",
  CF_AGENT_STREAM_RESUME_REQUEST: "cf_agent_stream_resume_request",
  CF_AGENT_STREAM_RESUME_NONE: "cf_agent_stream_resume_none",
  CF_AGENT_STREAM_PENDING: "cf_agent_stream_pending",
  CF_AGENT_TOOL_RESULT: "cf_agent_tool_result",
  CF_AGENT_MESSAGE_UPDATED: "cf_agent_message_updated",
  CF_AGENT_TOOL_APPROVAL: "cf_agent_tool_approval",
  CF_AGENT_CHAT_RECOVERING: "cf_agent_chat_recovering",
  CF_AGENT_MCP_SERVERS: "cf_agent_mcp_servers",
  CF_AGENT_STATE: "cf_agent_state",
  CF_AGENT_STATE_ERROR: "cf_agent_state_error",
  CF_AGENT_IDENTITY: "cf_agent_identity",
  RPC: "rpc",
} as const satisfies Record<string, (ClientFrame | ServerFrame)["type"]>;

/** One of the words of {@link MessageType}. */
export type MessageType = (typeof MessageType)[keyof typeof MessageType];

/** Whatever a client sends to a chat. */
export type IncomingMessage<M extends UIMessage = UIMessage> =
  | ChatClearFrame
  | ChatRequestFrame
  | (Omit<TranscriptPushFrame, "messages"> & { readonly messages: readonly M[] })
  | ChatCancelFrame
  | ResumeAckFrame
  | ResumeRequestFrame
  | ToolResultFrame
  | ToolApprovalFrame;

/** Whatever a chat sends to a client of the public packages. */
export type OutgoingMessage<M extends UIMessage = UIMessage> =
  | ChatClearFrame
  | (Omit<TranscriptFrame, "messages"> & { readonly messages: readonly M[] })
  | ChatResponseFrame
  | StreamResumingFrame
  | (Omit<MessageUpdatedFrame, "message"> & { readonly message: M })
  | StreamResumeNoneFrame
  | StreamPendingFrame
  | ChatRecoveringFrame;
