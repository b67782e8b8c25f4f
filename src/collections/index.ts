/**
 * `perdure/collections`: durable state for AI agents in collections of TanStack DB. Docs: docs/collections.md.
 */
export { generationClaimId, runnerClaimId, toolClaimId } from "./claim/claim.ts";
export type { Acquired, Claim, Claims, ClaimView, DeadLetter, Hold, HoldOptions } from "./claim/claim.ts";
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
export { GenerationError } from "./generation/error.ts";
export type { PartialAnswer } from "./generation/error.ts";
export type { CollectStreamOptions, StreamResult } from "./generation/read-stream.ts";
export { collectStream, streamToCollection } from "./generation/stream-to-collection.ts";
export type { StreamToCollectionOptions } from "./generation/stream-to-collection.ts";
export type { StreamEnd } from "./generation/tally.ts";
export { logCollectionOptions, writeMutations } from "./log/collection-options.ts";
export type { LogCollectionConfig, LogOptions, LogUtils } from "./log/collection-options.ts";
export { durableStreamCollectionOptions } from "./log/durable-streams/stream-collection.ts";
export type { StreamCollectionSource } from "./log/durable-streams/stream-collection.ts";
export type { StreamHeaders } from "./log/durable-streams/stream-http.ts";
export { openStreamLog } from "./log/durable-streams/stream-log.ts";
export type { StreamLogOptions } from "./log/durable-streams/stream-log.ts";
export { openLocalLog } from "./log/local-log.ts";
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
export type { RetryPolicy } from "./retry.ts";
export { rowsOf } from "./rows.ts";
export type { RowCollection, RowOptions, Rows } from "./rows.ts";
export type { QueryRow, RowQuery } from "./watch.ts";
