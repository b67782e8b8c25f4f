import type { StandardSchemaV1 } from "@standard-schema/spec";
import { chat, maxIterations } from "@tanstack/ai";
import type {
  AnyTextAdapter,
  AnyTool,
  ModelMessage,
  SchemaInput,
  StreamChunk,
  ToolExecutionContext,
} from "@tanstack/ai";
import { PerdureError, errorText } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import { deleteChunksFrom, toChunkRecord } from "../answer/chunk.ts";
import { collectStream, streamToCollection, type ChunkTransform } from "../answer/stream-to-collection.ts";
import { defaultResult, defaultRow, isSettled, toolCallRowId } from "../call/call-row.ts";
import { durableToolOf, makeDurableTool } from "../call/durable-tool.ts";
import type { ToolLike } from "../call/types.ts";
import type { ChunkRecord, ToolCallRecord } from "../contract.ts";
import { rowsOf, type RowCollection } from "../log/rows.ts";
import { checkValue } from "../log/schema.ts";
import { isUnwritable } from "../retry.ts";
import { linkSignals } from "../../base/abort.ts";

/** What a schema makes of a value; `unknown` for a JSON Schema. */
type SchemaOutput<TSchema> = TSchema extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<TSchema> : unknown;

/** What a schema takes; `unknown` for a JSON Schema. */
type SchemaInputValue<TSchema> = TSchema extends StandardSchemaV1 ? StandardSchemaV1.InferInput<TSchema> : unknown;

interface WorkerAgentOptions<TInput extends SchemaInput, TOutput extends SchemaInput> {
  readonly name: string;
  /** Tells the models that may use it when to. */
  readonly description: string;
  readonly instructions: string;
  readonly adapter: AnyTextAdapter;
  readonly tools?: readonly AnyTool[];
  readonly inputSchema: TInput;
  readonly outputSchema: TOutput;
  /** What the model is shown: all it knows. What it throws fails the call. */
  readonly buildMessages: (input: SchemaOutput<TInput>) => ModelMessage[] | Promise<ModelMessage[]>;
  /**
   * Keeps its tool calls, and optionally its chunks, as rows. As a tool of an answer, or with `run({ id })`, a second run after a
   * crash reuses the results of finished calls.
   */
  readonly durable?: {
    readonly toolCalls: RowCollection<ToolCallRecord>;
    readonly chunks?: RowCollection<ChunkRecord>;
  };
  /** How many workers may be inside one another. 5 by default. */
  readonly maxDepth?: number;
  /** How often the model may be called for one task. 20 by default. */
  readonly maxModelCalls?: number;
}

interface WorkerRunOptions {
  readonly signal?: AbortSignal;
  /** Names the run: with `durable` a second one under the same name takes up what the first has finished. */
  readonly id?: string;
}

/** What a tool is called with by `chat()`, as far as a worker looks at it. */
interface CallContext {
  readonly toolCallId?: string;
  readonly abortSignal?: AbortSignal;
  readonly context?: unknown;
}

/** An agent for one task: a tool for other agents, and a function. */
export interface WorkerAgent<TInput extends SchemaInput, TOutput extends SchemaInput> {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: TInput;
  readonly outputSchema: TOutput;
  /** As a tool: called by `chat()`, with an input that it has checked. */
  execute(input: SchemaOutput<TInput>, context?: CallContext): Promise<SchemaOutput<TOutput>>;
  /**
   * Does the task.
   * @throws PerdureError `bad_input` for an input or an output that is not as its schema says, `limit` when workers
   *   are nested too deeply or the model goes on and on, `cancelled` when `signal` aborted; GenerationError.
   */
  run(input: SchemaInputValue<TInput>, options?: WorkerRunOptions): Promise<SchemaOutput<TOutput>>;
}

const DEFAULT_DEPTH = 5;
const DEFAULT_MODEL_CALLS = 20;

interface Task {
  readonly generationId: string;
  readonly parentGenerationId: string | undefined;
  readonly depth: number;
  readonly signal: AbortSignal | undefined;
  readonly context: object;
}

/** An agent without memory: each call starts fresh, uses its own tools and returns an object. Use as a tool, or `run` it. */
export function createWorkerAgent<TInput extends SchemaInput, TOutput extends SchemaInput>(
  options: WorkerAgentOptions<TInput, TOutput>,
): WorkerAgent<TInput, TOutput> {
  const { name, description, inputSchema, outputSchema } = options;
  return {
    name,
    description,
    inputSchema,
    outputSchema,
    execute: (input, call) => work(options, input, taskOf(options, call)),
    run: async (input, { signal, id } = {}) => {
      const checked = await checkValue(inputSchema, input, `The input of the worker "${name}"`);
      const generationId = id ?? newId("worker");
      const task: Task = { generationId, parentGenerationId: undefined, depth: 1, signal, context: {} };
      // The schema has said so.
      return work(options, checked as SchemaOutput<TInput>, task);
    },
  };
}

/** The task that a call of `chat()` stands for. @throws PerdureError `limit`. */
function taskOf(options: { readonly name: string; readonly maxDepth?: number }, call: CallContext = {}): Task {
  const context = typeof call.context === "object" && call.context !== null ? call.context : {};
  const { workerDepth, generationId: parent } = context as { workerDepth?: unknown; generationId?: unknown };
  const depth = (typeof workerDepth === "number" ? workerDepth : 0) + 1;
  const maxDepth = options.maxDepth ?? DEFAULT_DEPTH;
  if (depth > maxDepth) {
    throw new PerdureError(
      "limit",
      `The worker "${options.name}" was called ${depth} workers deep, and ${maxDepth} are allowed: does one call itself?`,
    );
  }
  const parentGenerationId = typeof parent === "string" ? parent : undefined;
  const own = call.toolCallId ?? newId("call");
  const generationId =
    parentGenerationId === undefined ? newId("worker") : `${parentGenerationId}:${own}:${options.name}`;
  return { generationId, parentGenerationId, depth, signal: call.abortSignal, context };
}

async function work<TInput extends SchemaInput, TOutput extends SchemaInput>(
  options: WorkerAgentOptions<TInput, TOutput>,
  input: SchemaOutput<TInput>,
  task: Task,
): Promise<SchemaOutput<TOutput>> {
  const { name, durable, outputSchema } = options;
  if (task.signal?.aborted === true) throw new PerdureError("cancelled", `The worker "${name}" was cancelled.`);
  const messages = await options.buildMessages(input);
  if (durable !== undefined) await rowsOf(durable.toolCalls).ready();
  if (durable?.chunks !== undefined) await rowsOf(durable.chunks).ready();
  const abortController = new AbortController();
  const unlink = linkSignals([task.signal], abortController);
  try {
    const stream = chat({
      adapter: options.adapter,
      systemPrompts: [options.instructions],
      messages,
      tools: toolsOf(options, task),
      outputSchema,
      stream: true,
      abortController,
      agentLoopStrategy: maxIterations(options.maxModelCalls ?? DEFAULT_MODEL_CALLS),
      context: { ...task.context, generationId: task.generationId, workerDepth: task.depth },
    }) as AsyncIterable<StreamChunk>;
    const result = await readAll(stream, options, task);
    if (result.outcome !== "completed") {
      throw new PerdureError("limit", `The worker "${name}" was stopped while its model still called tools.`);
    }
    if (result.object === undefined) {
      throw new PerdureError("call_failed", `The model of the worker "${name}" returned no object.`);
    }
    const object = await checkValue(outputSchema, result.object, `The output of the worker "${name}"`);
    return object as SchemaOutput<TOutput>;
  } finally {
    unlink();
  }
}

function toolsOf(
  options: Pick<WorkerAgentOptions<SchemaInput, SchemaInput>, "tools" | "durable">,
  task: Task,
): AnyTool[] {
  const { tools = [], durable } = options;
  if (durable === undefined) return [...tools];
  const { generationId, parentGenerationId } = task;
  return tools.map((tool) => recordedTool(tool, { toolCalls: durable.toolCalls, generationId, parentGenerationId }));
}

async function readAll(
  stream: AsyncIterable<StreamChunk>,
  { durable }: Pick<WorkerAgentOptions<SchemaInput, SchemaInput>, "durable">,
  { generationId, parentGenerationId, signal }: Task,
) {
  const reading = signal === undefined ? {} : { signal };
  const collection = durable?.chunks;
  if (collection === undefined) return collectStream(stream, reading);
  // Those of a run that was cut off.
  await deleteChunksFrom(collection, generationId, 0, {});
  const parent = parentGenerationId === undefined ? {} : { parentGenerationId };
  const transform: ChunkTransform<ChunkRecord> = (...event) => ({ ...toChunkRecord(...event), ...parent });
  return streamToCollection(stream, { ...reading, collection, generationId, transform });
}

interface RecordedRun {
  readonly toolCalls: RowCollection<ToolCallRecord>;
  readonly generationId: string;
  readonly parentGenerationId: string | undefined;
}

/**
 * A tool whose calls are rows. With an implementation it runs here, and a later run of the same id takes the result from the row;
 * without, it is executed elsewhere.
 */
function recordedTool(tool: AnyTool, run: RecordedRun): AnyTool {
  if (durableToolOf(tool) !== undefined) return tool;
  const { toolCalls, generationId, parentGenerationId } = run;
  const parent = parentGenerationId === undefined ? {} : { parentGenerationId };
  if (tool.execute === undefined) {
    return makeDurableTool(tool as ToolLike, toolCalls, {
      generationId,
      transform: (call) => ({ ...defaultRow(call, false), generationId, ...parent }),
    }) as AnyTool;
  }
  return { ...tool, execute: (args: unknown, context?: ToolExecutionContext) => execute(tool, run, args, context) };
}

async function execute(
  tool: AnyTool,
  { toolCalls, generationId, parentGenerationId }: RecordedRun,
  args: unknown,
  context: ToolExecutionContext | undefined,
): Promise<unknown> {
  const rows = rowsOf(toolCalls);
  const toolCallId = context?.toolCallId ?? newId("call");
  const id = toolCallRowId(generationId, toolCallId);
  const known = rows.get(id);
  if (known !== undefined && isSettled(known)) return defaultResult(known);
  if (known === undefined) {
    const row = defaultRow({ id, name: tool.name, args, toolCallId, generationId }, false);
    const parent = parentGenerationId === undefined ? {} : { parentGenerationId };
    await rows.insert({ ...row, ...parent, status: "executing", attempt: 1 });
  } else {
    await settle({ attempt: (known.attempt ?? 0) + 1, status: "executing" });
  }
  let result: unknown;
  try {
    result = (await tool.execute?.(args, context)) as unknown;
  } catch (error) {
    // Cut off is not failed: a later run may try it again.
    if (context?.abortSignal?.aborted !== true) await settle({ status: "failed", error: errorText(error) });
    throw error;
  }
  let kept: boolean;
  try {
    kept = await settle({ status: "completed", ...(result === undefined ? {} : { result }) });
  } catch (error) {
    // What no row can hold is no result; said in the row too, or it would look as if the tool still worked.
    if (isUnwritable(error)) await settle({ status: "failed", error: errorText(error) });
    throw error;
  }
  if (!kept) {
    throw new PerdureError(
      "conflict",
      `The row "${id}" of the call of "${tool.name}" is gone, or was settled elsewhere.`,
    );
  }
  return result;

  function settle(change: Partial<ToolCallRecord>): Promise<boolean> {
    return rows.update(id, (draft) => {
      if (isSettled(draft)) return false;
      return Object.assign(draft, change, { updatedAt: new Date().toISOString() });
    });
  }
}
