/**
 * `perdure/collections`: durable state for AI agents in collections of TanStack DB. Docs: docs/collections.md.
 */
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
export { logCollectionOptions, writeMutations } from "./log/collection-options.ts";
export type { LogCollectionConfig, LogUtils } from "./log/collection-options.ts";
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
