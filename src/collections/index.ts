/** `perdure/collections`: durable state for AI agents in collections of TanStack DB. Docs: docs/collections.md. */
export {
  assembleText,
  getLastPersistedChunkIndex,
  getPartialContent,
  isCompleteAnswer,
  mapChunkType,
  readChunks,
} from "./answer/chunk.ts";
export type { CompletedChat, DurableChatResult, SuspendedChat } from "./answer/durable-chat-types.ts";
export { durableChat } from "./answer/durable-chat.ts";
export type { GenerationEffect, GenerationRun } from "./answer/effect-types.ts";
export { createGenerationEffect } from "./answer/effect.ts";
export { forgetGenerations } from "./answer/forget.ts";
export { GenerationError } from "./answer/read-stream.ts";
export type { StreamResult } from "./answer/read-stream.ts";
export { recoverOrphanedOperations, resumeToolChain } from "./answer/recover.ts";
export type { RecoveryReport } from "./answer/recover.ts";
export { collectStream, streamToCollection } from "./answer/stream-to-collection.ts";
export type { TurnRecord } from "./answer/turn-log.ts";
export { createApprovals } from "./approval/approvals.ts";
export type { Approvals } from "./approval/approvals.ts";
export { getApprovalStatus } from "./approval/trail.ts";
export type { ApprovalStatus } from "./approval/trail.ts";
export { makeAsyncTool, makeDurableTool, makeDurableTools } from "./call/durable-tool.ts";
export { createToolExecutionEffect } from "./call/executor.ts";
export type {
  DurableTool,
  DurableTools,
  ToolCallData,
  ToolExecutionEffect,
  ToolImplementations,
  ToolRun,
} from "./call/types.ts";
export { waitForToolResult } from "./call/wait-for-result.ts";
export { agentCollections } from "./chat/agent-collections.ts";
export type { AgentCollections } from "./chat/agent-collections.ts";
export type {
  Agent,
  AgentConfig,
  AgentContext,
  AgentGenerate,
  AgentGenerateInput,
  AgentPeer,
  AgentReference,
  AgentReply,
  CollectionAgentConfig,
  QueryAgentConfig,
} from "./chat/config.ts";
export { createAgent } from "./chat/create-agent.ts";
export { durableAgent } from "./chat/durable-agent.ts";
export type { DurableAgentOptions } from "./chat/durable-agent.ts";
export { getContextMessages } from "./chat/history.ts";
export { agentMessageSchema, reviveMessage } from "./chat/message.ts";
export type { NewAgentMessage } from "./chat/message.ts";
export { agentPeer } from "./chat/response.ts";
export { summarizeOldMessages } from "./chat/summary.ts";
export { createWorkerAgent } from "./chat/worker-agent.ts";
export type { WorkerAgent } from "./chat/worker-agent.ts";
export type {
  AgentMessage,
  AgentToolCall,
  ApprovalEvent,
  CheckpointContract,
  ChunkContract,
  ChunkRecord,
  ChunkType,
  ClaimRecord,
  GenerationContract,
  GenerationRecord,
  GenerationStatus,
  RunnerCheckpointRecord,
  SummaryRecord,
  ToolCallContract,
  ToolCallRecord,
  ToolCallStatus,
} from "./contract.ts";
export { logCollectionOptions, writeMutations } from "./log/collection-options.ts";
export { durableStreamCollectionOptions, openStreamLog } from "./log/durable-streams/stream-log.ts";
export { openLocalLog } from "./log/local-log.ts";
export { openAgentLog, perdureCollectionOptions } from "./log/perdure/agent-log.ts";
export type { RowLog } from "./log/row-log.ts";
export { rowsOf } from "./log/rows.ts";
export type { RowCollection, Rows } from "./log/rows.ts";
export type { RetryPolicy } from "./retry.ts";
export type { Claim, Claims } from "./worker/claim.ts";
export { createClaims } from "./worker/claims.ts";
export type { DurableStreamsWakePayload } from "./worker/control.ts";
export { drainUntilIdle } from "./worker/drain.ts";
export { runWithLifecycle } from "./worker/lifecycle.ts";
export type { RunnerLifecycleAdapter, RunnerSession } from "./worker/lifecycle.ts";
export { durableStreamsWebhookAdapter, handleDurableStreamsWake } from "./worker/webhook.ts";
export type { WebhookExecutionMode } from "./worker/webhook.ts";
