/**
 * `perdure/collections`: durable state for AI agents in collections of TanStack DB. Docs: docs/collections.md.
 */
export { agentCollections } from "./agent/agent-collections.ts";
export type { AgentCollections, LogCollection } from "./agent/agent-collections.ts";
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
} from "./agent/config.ts";
export { createAgent } from "./agent/create-agent.ts";
export { durableAgent } from "./agent/durable-agent.ts";
export type { AutoSummarizeOptions, DurableAgentOptions } from "./agent/durable-agent.ts";
export { getContextMessages } from "./agent/history.ts";
export type { HistoryCollections } from "./agent/history.ts";
export { agentMessageSchema } from "./agent/message.ts";
export type { NewAgentMessage } from "./agent/message.ts";
export { agentPeer } from "./agent/response.ts";
export { reviveMessage } from "./agent/revive-message.ts";
export { summarizeOldMessages } from "./agent/summary.ts";
export type { SummarizeOptions } from "./agent/summary.ts";
export { createWorkerAgent } from "./agent/worker.ts";
export type {
  SchemaInputValue,
  SchemaOutput,
  WorkerAgent,
  WorkerAgentOptions,
  WorkerRunOptions,
} from "./agent/worker.ts";
export { getApprovalStatus } from "./approval/approval-status.ts";
export type { ApprovalStatus } from "./approval/approval-status.ts";
export { createApprovals } from "./approval/approvals.ts";
export type { ApprovalBy, ApprovalDecision, Approvals, ApprovalsOptions } from "./approval/approvals.ts";
export { generationClaimId, runnerClaimId, toolClaimId } from "./claim/claim.ts";
export type {
  Acquired,
  AcquireOptions,
  Claim,
  Claims,
  ClaimView,
  DeadLetter,
  Hold,
  HoldOptions,
} from "./claim/claim.ts";
export { createClaims } from "./claim/claims.ts";
export type { ClaimsOptions } from "./claim/claims.ts";
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
} from "./generation/chunk.ts";
export type { RawChunkRecord } from "./generation/chunk.ts";
export type { ChunkSinkOptions, ChunkTransform, TransformOption } from "./generation/chunk-sink.ts";
export type { ChunkBatch, Conditions } from "./generation/chunk-writer.ts";
export { durableChat } from "./generation/durable-chat.ts";
export type {
  ChatSettings,
  CompletedChat,
  DurableChatOptions,
  DurableChatResult,
  SuspendedChat,
} from "./generation/durable-chat-types.ts";
export type {
  CompletedResult,
  GenerationEffect,
  GenerationEffectOptions,
  GenerationResult,
  GenerationRun,
} from "./generation/effect-types.ts";
export { GenerationError } from "./generation/error.ts";
export type { PartialAnswer } from "./generation/error.ts";
export { createGenerationEffect } from "./generation/generation-effect.ts";
export type { CollectStreamOptions, StreamResult } from "./generation/read-stream.ts";
export { collectStream, streamToCollection } from "./generation/stream-to-collection.ts";
export type { StreamToCollectionOptions } from "./generation/stream-to-collection.ts";
export type { StreamEnd } from "./generation/tally.ts";
export type { TurnRecord } from "./generation/turn-log.ts";
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
export { durableStreamCollectionOptions } from "./log/durable-streams/stream-collection.ts";
export type { StreamCollectionSource } from "./log/durable-streams/stream-collection.ts";
export type { StreamHeaders } from "./log/durable-streams/stream-http.ts";
export { openStreamLog } from "./log/durable-streams/stream-log.ts";
export type { StreamLogOptions } from "./log/durable-streams/stream-log.ts";
export { openLocalLog } from "./log/local-log.ts";
export { perdureCollectionOptions } from "./log/perdure/agent-collection.ts";
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
export { classifyGeneration, classifyToolCall } from "./recovery/classify.ts";
export type { Classification } from "./recovery/classify.ts";
export { forgetGenerations } from "./recovery/forget.ts";
export type { Forgotten, GenerationTraces } from "./recovery/forget.ts";
export type { RecoverableRow } from "./recovery/orphan.ts";
export { getLastPersistedChunkIndex, getPartialContent } from "./recovery/partial.ts";
export { recoverOrphanedOperations } from "./recovery/recover.ts";
export type {
  GenerationPolicy,
  RecoverableGeneration,
  Recovered,
  RecoveryOptions,
  RecoveryReport,
} from "./recovery/recover.ts";
export { resumeToolChain } from "./recovery/tool-chain.ts";
export type { ChainedToolCall, ResumableGeneration, ResumedToolChain } from "./recovery/tool-chain.ts";
export type { RetryPolicy } from "./retry.ts";
export { rowsOf } from "./rows.ts";
export type { RowCollection, RowOptions, Rows } from "./rows.ts";
export type { AckMode } from "./runner/acks.ts";
export { catchUp } from "./runner/catch-up.ts";
export { checkpointsOf, compareCursors, producerOf } from "./runner/checkpoint.ts";
export type { CompareCursors } from "./runner/checkpoint.ts";
export type { ControlAnswer, ControlOptions, SubscriptionFacts } from "./runner/control.ts";
export { drainUntilIdle } from "./runner/drain.ts";
export type { DrainOptions } from "./runner/drain.ts";
export type { RunnerClaim, RunnerLifecycleAdapter, RunnerSession, RunnerState } from "./runner/lifecycle.ts";
export { pullWakeAdapter } from "./runner/pull-adapter.ts";
export type { PullWake, PullWakeOptions } from "./runner/pull-adapter.ts";
export { runPullWakeWorker } from "./runner/pull-worker.ts";
export type { PullWakeWorker, PullWakeWorkerOptions } from "./runner/pull-worker.ts";
export { tableQueueAdapter } from "./runner/queue-adapter.ts";
export type { QueueWake, TableQueueAdapter, TableQueueOptions } from "./runner/queue-adapter.ts";
export { newJob } from "./runner/queue-job.ts";
export type { QueueJob } from "./runner/queue-job.ts";
export { runQueueWorker } from "./runner/queue-worker.ts";
export type { QueueWorker, QueueWorkerOptions } from "./runner/queue-worker.ts";
export { runWithLifecycle } from "./runner/run.ts";
export { ensureWakeSubscription, keepWakeSubscription, requestWake } from "./runner/subscription.ts";
export type { KeptSubscription, WakeSubscription } from "./runner/subscription.ts";
export { parseWakePayload } from "./runner/wake-payload.ts";
export type { DurableStreamsWakePayload, DurableStreamsWakeStream } from "./runner/wake-payload.ts";
export type { WakeKey } from "./runner/wake-signature.ts";
export { durableStreamsWebhookAdapter } from "./runner/webhook-adapter.ts";
export type {
  DurableStreamsWebhookAdapter,
  DurableStreamsWebhookOptions,
  WakeCallback,
  WebhookExecutionMode,
} from "./runner/webhook-adapter.ts";
export { handleDurableStreamsWake } from "./runner/webhook-handler.ts";
export type { HandleWakeOptions } from "./runner/webhook-handler.ts";
export { durableToolOf, makeAsyncTool, makeDurableTool, makeDurableTools } from "./tool/durable-tool.ts";
export { createToolExecutionEffect } from "./tool/execution-effect.ts";
export type {
  LateResults,
  ToolExecutionCallbacks,
  ToolExecutionEffect,
  ToolExecutionOptions,
} from "./tool/execution-options.ts";
export {
  cancelToolCalls,
  openToolCalls,
  toolCallResults,
  waitForToolCalls,
  watchToolCalls,
} from "./tool/suspended-calls.ts";
export type { CallsOf } from "./tool/suspended-calls.ts";
export { toolCallRowId } from "./tool/tool-row.ts";
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
} from "./tool/tool-types.ts";
export { waitForToolResult } from "./tool/wait-for-result.ts";
export type { WaitOptions } from "./tool/wait-for-result.ts";
export type { QueryRow, RowQuery } from "./watch.ts";
