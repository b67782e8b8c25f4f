/**
 * `perdure/collections`: durable state for AI agents in collections of TanStack DB. Docs: docs/collections.md.
 */
export { agentCollections } from "./chat/agent-collections.ts";
export type { AgentCollections, LogCollection } from "./chat/agent-collections.ts";
export type {
  Agent,
  AgentCollectionsBase,
  AgentConfig,
  AgentContext,
  AgentDrainOptions,
  AgentGenerate,
  AgentGenerateInput,
  AgentHooks,
  AgentPeer,
  AgentReference,
  AgentReply,
  AgentRequest,
  AgentRuntime,
  AgentState,
  AgentTurn,
  AgentTurnStatus,
  CollectionAgentConfig,
  MessageCollection,
  QueryAgentConfig,
  WatchForResponseOptions,
} from "./chat/config.ts";
export { createAgent } from "./chat/create-agent.ts";
export { durableAgent } from "./chat/durable-agent.ts";
export type { AutoSummarizeOptions, DurableAgentOptions } from "./chat/durable-agent.ts";
export { getContextMessages } from "./chat/history.ts";
export type { HistoryCollections } from "./chat/history.ts";
export { agentMessageSchema } from "./chat/message.ts";
export type { NewAgentMessage } from "./chat/message.ts";
export { agentPeer } from "./chat/response.ts";
export { reviveMessage } from "./chat/message.ts";
export { summarizeOldMessages } from "./chat/summary.ts";
export type { SummarizeOptions } from "./chat/summary.ts";
export { createWorkerAgent } from "./chat/worker-agent.ts";
export type {
  SchemaInputValue,
  SchemaOutput,
  WorkerAgent,
  WorkerAgentOptions,
  WorkerRunOptions,
} from "./chat/worker-agent.ts";
export { getApprovalStatus } from "./approval/trail.ts";
export type { ApprovalStatus } from "./approval/trail.ts";
export { createApprovals } from "./approval/approvals.ts";
export type { ApprovalBy, ApprovalDecision, Approvals, ApprovalsOptions } from "./approval/approvals.ts";
export { generationClaimId, runnerClaimId, toolClaimId } from "./worker/claim.ts";
export type {
  Acquired,
  AcquireOptions,
  Claim,
  Claims,
  ClaimView,
  DeadLetter,
  Hold,
  HoldOptions,
} from "./worker/claim.ts";
export { createClaims } from "./worker/claims.ts";
export type { ClaimsOptions } from "./worker/claims.ts";
export type {
  AgentMessage,
  AgentToolCall,
  ApprovalEvent,
  CheckpointContract,
  ChunkContract,
  ChunkRecord,
  ChunkType,
  ClaimBeat,
  ClaimRecord,
  ClaimRow,
  GenerationContract,
  GenerationRecord,
  GenerationStatus,
  RunnerCheckpointRecord,
  SummaryRecord,
  ToolCallContract,
  ToolCallRecord,
  ToolCallStatus,
} from "./contract.ts";
export {
  assembleText,
  chunkRowId,
  isCompleteAnswer,
  mapChunkType,
  readChunks,
  toChunkRecord,
  toRawChunk,
} from "./answer/chunk.ts";
export type { RawChunkRecord } from "./answer/chunk.ts";
export type { ChunkSinkOptions, ChunkTransform, TransformOption } from "./answer/stream-to-collection.ts";
export type { ChunkBatch, Conditions } from "./answer/stream-to-collection.ts";
export { durableChat } from "./answer/durable-chat.ts";
export type {
  ChatSettings,
  CompletedChat,
  DurableChatOptions,
  DurableChatResult,
  SuspendedChat,
} from "./answer/durable-chat-types.ts";
export type {
  CompletedResult,
  GenerationEffect,
  GenerationEffectOptions,
  GenerationResult,
  GenerationRun,
} from "./answer/effect-types.ts";
export { GenerationError } from "./answer/read-stream.ts";
export type { PartialAnswer } from "./answer/read-stream.ts";
export { createGenerationEffect } from "./answer/effect.ts";
export type { CollectStreamOptions, StreamResult } from "./answer/read-stream.ts";
export { collectStream, streamToCollection } from "./answer/stream-to-collection.ts";
export type { StreamToCollectionOptions } from "./answer/stream-to-collection.ts";
export type { StreamEnd } from "./answer/read-stream.ts";
export type { TurnRecord } from "./answer/turn-log.ts";
export { logCollectionOptions, writeMutations } from "./log/collection-options.ts";
export type {
  LogCollectionConfig,
  LogOptions,
  LogUtils,
  PlainConfig,
  PlainOptions,
  SchemaConfig,
  SchemaOptions,
} from "./log/collection-options.ts";
export { durableStreamCollectionOptions } from "./log/durable-streams/stream-log.ts";
export type { StreamCollectionSource } from "./log/durable-streams/stream-log.ts";
export type { StreamHeaders } from "./log/durable-streams/stream-http.ts";
export { openStreamLog } from "./log/durable-streams/stream-log.ts";
export type { StreamLogOptions } from "./log/durable-streams/stream-log.ts";
export { openLocalLog } from "./log/local-log.ts";
export { perdureCollectionOptions } from "./log/perdure/agent-log.ts";
export { openAgentLog } from "./log/perdure/agent-log.ts";
export type { AgentLogOptions } from "./log/perdure/agent-log.ts";
export type { AgentSocket } from "./log/perdure/agent-socket.ts";
export type {
  AppliedChange,
  ConfirmedRow,
  QuarantinedMessage,
  RowChange,
  RowCondition,
  RowLog,
  RowProducer,
  RowTable,
  RowValue,
  RowWrite,
  WriteReceipt,
} from "./log/row-log.ts";
export { classifyGeneration, classifyToolCall } from "./answer/recover.ts";
export type { Classification } from "./answer/recover.ts";
export { forgetGenerations } from "./answer/forget.ts";
export type { Forgotten, GenerationTraces } from "./answer/forget.ts";
export type { RecoverableRow } from "./answer/recover.ts";
export { getLastPersistedChunkIndex, getPartialContent } from "./answer/chunk.ts";
export { recoverOrphanedOperations } from "./answer/recover.ts";
export type {
  GenerationPolicy,
  RecoverableGeneration,
  Recovered,
  RecoveryOptions,
  RecoveryReport,
} from "./answer/recover.ts";
export { resumeToolChain } from "./answer/recover.ts";
export type { ChainedToolCall, ResumableGeneration, ResumedToolChain } from "./answer/recover.ts";
export type { RetryPolicy } from "./retry.ts";
export { rowsOf } from "./log/rows.ts";
export type { RowCollection, RowOptions, Rows } from "./log/rows.ts";
export type { AckMode } from "./worker/acks.ts";
export { catchUp } from "./worker/checkpoint.ts";
export { checkpointsOf, compareCursors, producerOf } from "./worker/checkpoint.ts";
export type { CompareCursors } from "./worker/checkpoint.ts";
export type { ControlAnswer, ControlOptions, SubscriptionFacts } from "./worker/control.ts";
export { drainUntilIdle } from "./worker/drain.ts";
export type { DrainOptions } from "./worker/drain.ts";
export type { RunnerClaim, RunnerLifecycleAdapter, RunnerSession, RunnerState } from "./worker/lifecycle.ts";
export { pullWakeAdapter } from "./worker/pull-worker.ts";
export type { PullWake, PullWakeOptions } from "./worker/pull-worker.ts";
export { runPullWakeWorker } from "./worker/pull-worker.ts";
export type { PullWakeWorker, PullWakeWorkerOptions } from "./worker/pull-worker.ts";
export { tableQueueAdapter } from "./worker/queue.ts";
export type { QueueWake, TableQueueAdapter, TableQueueOptions } from "./worker/queue.ts";
export { newJob } from "./worker/queue.ts";
export type { QueueJob } from "./worker/queue.ts";
export { runQueueWorker } from "./worker/queue.ts";
export type { QueueWorker, QueueWorkerOptions } from "./worker/queue.ts";
export { runWithLifecycle } from "./worker/lifecycle.ts";
export { ensureWakeSubscription, keepWakeSubscription, requestWake } from "./worker/subscription.ts";
export type { KeptSubscription, WakeSubscription } from "./worker/subscription.ts";
export { parseWakePayload } from "./worker/control.ts";
export type { DurableStreamsWakePayload, DurableStreamsWakeStream } from "./worker/control.ts";
export type { WakeKey } from "./worker/wake-signature.ts";
export { durableStreamsWebhookAdapter } from "./worker/webhook.ts";
export type {
  DurableStreamsWebhookAdapter,
  DurableStreamsWebhookOptions,
  WakeCallback,
  WebhookExecutionMode,
} from "./worker/webhook.ts";
export { handleDurableStreamsWake } from "./worker/webhook.ts";
export type { HandleWakeOptions } from "./worker/webhook.ts";
export { durableToolOf, makeAsyncTool, makeDurableTool, makeDurableTools } from "./call/durable-tool.ts";
export { createToolExecutionEffect } from "./call/executor.ts";
export type { LateResults, ToolExecutionCallbacks, ToolExecutionEffect, ToolExecutionOptions } from "./call/types.ts";
export {
  cancelToolCalls,
  openToolCalls,
  toolCallResults,
  waitForToolCalls,
  watchToolCalls,
} from "./call/suspended-calls.ts";
export type { CallsOf } from "./call/suspended-calls.ts";
export { toolCallRowId } from "./call/call-row.ts";
export type {
  AsyncToolOptions,
  DurableTool,
  DurableToolMode,
  DurableToolOptions,
  DurableTools,
  ToolCallData,
  ToolCallDataOf,
  ToolCallTransform,
  ToolImplementations,
  ToolLike,
  ToolResult,
  ToolResultMessage,
  ToolRun,
} from "./call/types.ts";
export { waitForToolResult } from "./call/wait-for-result.ts";
export type { WaitOptions } from "./call/wait-for-result.ts";
export type { QueryRow, RowQuery } from "./log/query.ts";
