/** `perdure/collections/answer`: answers and tool calls step by step, for loops of one's own. Docs: docs/collections-generation.md. */
export { toolCallRowId } from "../call/call-row.ts";
export { durableToolOf } from "../call/durable-tool.ts";
export {
  cancelToolCalls,
  openToolCalls,
  toolCallResults,
  waitForToolCalls,
  watchToolCalls,
} from "../call/suspended-calls.ts";
export type { ToolResultMessage } from "../call/types.ts";
export { chunkRowId, toChunkRecord, toRawChunk } from "./chunk.ts";
export type { RawChunkRecord } from "./chunk.ts";
export type { Forgotten } from "./forget.ts";
export { classifyGeneration, classifyToolCall } from "./recover.ts";
export type { Classification, Recovered, ResumedToolChain } from "./recover.ts";
