import type { AnyTextAdapter, AnyTool, ModelMessage, StreamChunk } from "@tanstack/ai";
import type {
  Agent,
  AgentContext,
  AgentMessage,
  AgentReference,
  CheckpointContract,
  ChunkContract,
  ChunkRecord,
  CollectionAgentConfig,
  createGenerationEffect,
  drainUntilIdle,
  DurableStreamsWakePayload,
  GenerationContract,
  GenerationRecord,
  handleDurableStreamsWake,
  NewAgentMessage,
  QueryAgentConfig,
  RowCollection,
  RunnerCheckpointRecord,
  RunnerLifecycleAdapter,
  RunnerSession,
  runWithLifecycle,
  streamToCollection,
  SummaryRecord,
  ToolCallContract,
  ToolCallRecord,
  ToolImplementations,
  waitForToolResult,
  WebhookExecutionMode,
  WorkerAgent,
} from "perdure/collections";
import { expectTypeOf } from "vitest";

// The listings of types in the proposal, and its summary of the API: what is written to them must fit here. Where a
// listing is of something else (a description, a diagram, how it works inside), there is nothing to hold to.

// Contracts of rows.
interface Call {
  id: string;
  status: string;
  name: string;
  args: unknown;
}
expectTypeOf<Call>().toExtend<ToolCallContract>();
expectTypeOf<{ id: string; status: string }>().toExtend<GenerationContract>();
expectTypeOf<{ id: string; generationId: string; index: number; isFinal?: boolean }>().toExtend<ChunkContract>();
expectTypeOf<{ source: string; cursor: string }>().toEqualTypeOf<CheckpointContract>();

// Records.
interface Message {
  id: string;
  role: "user" | "assistant" | "system";
  content: string;
  targetAgent: string;
  actorId: string;
  processed: boolean;
  createdAt: string;
  generationId?: string;
  requestId?: string;
  inReplyTo?: string;
}
expectTypeOf<Message>().toExtend<AgentMessage>();
expectTypeOf<Pick<Message, "role" | "actorId" | "targetAgent" | "content">>().toExtend<NewAgentMessage>();
interface Times {
  createdAt: string;
  updatedAt: string;
}
interface StoredCall extends Times {
  id: string;
  generationId: string;
  name: string;
  args: unknown;
  status: "pending" | "executing" | "completed" | "failed" | "cancelled";
  result?: unknown;
  error?: string;
}
expectTypeOf<StoredCall>().toExtend<ToolCallRecord>();
interface StoredChunk {
  id: string;
  generationId: string;
  index: number;
  type: "text" | "tool-call-start" | "tool-call-args" | "tool-call-end" | "thinking";
  content: string;
}
expectTypeOf<StoredChunk>().toExtend<ChunkRecord>();
interface StoredGeneration extends Times {
  id: string;
  agentName: string;
  status: "pending" | "generating" | "completed" | "failed" | "cancelled";
  model: string;
  completedAt?: string;
  error?: string;
}
expectTypeOf<StoredGeneration>().toExtend<GenerationRecord>();
expectTypeOf<keyof SummaryRecord>().toEqualTypeOf<"id" | "agentName" | "createdAt" | "coveringUpTo" | "content">();
expectTypeOf<keyof RunnerCheckpointRecord>().toEqualTypeOf<"id" | "runnerId" | "source" | "cursor" | "updatedAt">();

// Runners.
interface Adapter<TWake> {
  claimWake(wake: TWake, ctx: { signal: AbortSignal }): Promise<{ fenceToken?: string }>;
  heartbeat?(state: { wake: TWake; fenceToken?: string }): Promise<void>;
  checkpoint?(checkpoints: CheckpointContract[], state: { wake: TWake; fenceToken?: string }): Promise<void>;
  complete?(state: { wake: TWake; fenceToken?: string }, result: { done: boolean }): Promise<void>;
  fail?(state: { wake: TWake; fenceToken?: string }, error: Error): Promise<void>;
}
expectTypeOf<Adapter<string>>().toExtend<RunnerLifecycleAdapter<string>>();
interface Session<TWake> {
  wake: TWake;
  fenceToken?: string;
  signal: AbortSignal;
  heartbeat(): Promise<void>;
  checkpoint(checkpoints: CheckpointContract[]): Promise<void>;
  complete(result: { done: boolean }): Promise<void>;
  fail(error: Error): Promise<void>;
}
expectTypeOf<RunnerSession<string>>().toExtend<Session<string>>();
expectTypeOf<{ type: "request-bound"; maxRequestMs?: number }>().toExtend<WebhookExecutionMode>();
expectTypeOf<{ type: "ack-immediate"; status?: 200 | 202 }>().toExtend<WebhookExecutionMode>();
declare const run: typeof runWithLifecycle<string, number>;
declare const adapter: Adapter<string>;
expectTypeOf(run("wake", adapter, async () => 1, { signal: AbortSignal.abort() })).toEqualTypeOf<Promise<number>>();
declare const drain: typeof drainUntilIdle;
expectTypeOf(
  drain({
    hasPendingWork: async () => false,
    runCycle: async () => {},
    maxIterations: 1,
    maxDurationMs: 1,
    lifecycle: { heartbeat: async () => {}, checkpoint: async (_checkpoints: CheckpointContract[]) => {} },
    buildCheckpoint: async (): Promise<CheckpointContract[]> => [],
  }),
).toEqualTypeOf<Promise<{ completed: boolean; cycles: number }>>();
expectTypeOf<Parameters<typeof handleDurableStreamsWake>[0]["run"]>()
  .parameter(0)
  .toEqualTypeOf<DurableStreamsWakePayload>();

// Tools and answers.
interface Search {
  readonly name: "search";
  readonly description: string;
}
expectTypeOf<keyof ToolImplementations<readonly [Search]>>().toEqualTypeOf<"search">();
declare const calls: RowCollection<ToolCallRecord>;
declare const wait: typeof waitForToolResult<ToolCallRecord, number>;
const limits = { timeout: 1, signal: AbortSignal.abort() };
expectTypeOf(
  wait(
    calls,
    "id",
    () => true,
    () => 1,
    limits,
  ),
).toEqualTypeOf<Promise<number>>();
declare const stream: AsyncIterable<StreamChunk>;
declare const chunks: RowCollection<ChunkRecord>;
declare const toCollection: typeof streamToCollection<ChunkRecord>;
expectTypeOf(
  toCollection(stream, {
    collection: chunks,
    generationId: "g",
    transform: (_chunk: StreamChunk, index: number, genId: string): StoredChunk => {
      return { id: `${genId}-${index}`, generationId: genId, index, type: "text", content: "" };
    },
    filter: (_chunk: StreamChunk) => true,
  }),
).resolves.toExtend<{ content: string }>();
type GenerationCallbacks = Parameters<typeof createGenerationEffect>[0];
expectTypeOf<"generate" | "onComplete" | "onCancelled" | "onError">().toExtend<keyof GenerationCallbacks>();

// Agents.
interface ListedAgent {
  name: string;
  hasPendingWork(): Promise<boolean>;
  runGenerationCycle(): Promise<void>;
  drainUntilIdle(options?: { maxIterations?: number; maxDurationMs?: number }): Promise<{
    completed: boolean;
    cycles: number;
  }>;
  watchForResponse(requestId: string, opts: { timeout: number; callerName: string }): Promise<{ content: string }>;
  dispose(): Promise<void>;
}
expectTypeOf<Agent>().toExtend<ListedAgent>();
expectTypeOf<"agentName" | "collections" | "signal">().toExtend<keyof AgentContext>();
interface ListedConfig {
  name: string;
  instructions: string;
  adapter: AnyTextAdapter;
  tools?: AnyTool[];
  agents?: AgentReference[];
  description?: string;
  buildMessages(pending: AgentMessage[], ctx: AgentContext): Promise<ModelMessage[]>;
  onResponse(response: string, pending: AgentMessage[], ctx: AgentContext): Promise<void>;
  onError(error: Error, pending: AgentMessage[], ctx: AgentContext): Promise<void>;
  generate(input: { pending: AgentMessage[]; messages: ModelMessage[]; context: AgentContext }): Promise<string>;
}
expectTypeOf<ListedConfig & Pick<CollectionAgentConfig, "collections">>().toExtend<CollectionAgentConfig>();
expectTypeOf<ListedConfig & Pick<QueryAgentConfig<AgentMessage>, "pendingWork">>().toExtend<
  QueryAgentConfig<AgentMessage>
>();
expectTypeOf<"agent" | "description" | "inputSchema" | "outputSchema" | "timeout" | "insertMessage">().toEqualTypeOf<
  keyof AgentReference
>();
expectTypeOf<"name" | "description" | "inputSchema" | "outputSchema" | "execute" | "run">().toExtend<
  keyof WorkerAgent<object, object>
>();
