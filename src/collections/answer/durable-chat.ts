import {
  chat,
  type AnyTextAdapter,
  type AnyTool,
  type Interrupt,
  type ModelMessage,
  type StreamChunk,
} from "@tanstack/ai";
import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import { defaultCancel } from "../call/call-row.ts";
import { durableToolOf, makeDurableTools } from "../call/durable-tool.ts";
import { openToolCalls, toolCallResults } from "../call/suspended-calls.ts";
import type { DurableToolOptions, OptionsArgument, ToolLike } from "../call/types.ts";
import type { AgentToolCall, ChunkContract, ChunkRecord, ToolCallContract, ToolCallRecord } from "../contract.ts";
import type { RowLog } from "../log/row-log.ts";
import { rowsOf, type RowOptions } from "../log/rows.ts";
import { linkSignals } from "../../base/abort.ts";
import { deleteChunksFrom, finishChunks } from "./chunk.ts";
import type { CompletedChat, DurableChatOptions, DurableChatResult, SuspendedChat } from "./durable-chat-types.ts";
import { GenerationError, readStream, type StreamResult } from "./read-stream.ts";
import { chunkSink, type ChunkSink } from "./stream-to-collection.ts";
import { TurnLog, recordTurns } from "./turn-log.ts";

/**
 * `chat()` whose tool calls, chunks and turns are rows, so that its answer outlives the process that works on it.
 *
 * - `hold`: the run waits until whoever executes tools has written their results.
 * - `suspend`: when the model calls durable tools, the run ends with outcome `suspended`, with every call already a pending row.
 *   Call it again with the same `generationId`, in any process: it says `suspended`, without calling the model, until all results
 *   are there; then it goes on.
 *
 * With `turns`, either mode can be called again with the same `generationId`, also after a crash: finished turns and their tools
 * are not repeated, a turn that was cut off is, and a complete answer is returned as it was. Only the latest run may write:
 * earlier ones that still live are fenced off.
 *
 * @throws GenerationError as `streamToCollection` does. PerdureError `limit` when the agent loop ended while the model still
 *   called tools (see `agentLoopStrategy`), `bad_config` for options that do not go together.
 */
export async function durableChat<
  TAdapter extends AnyTextAdapter,
  TToolRow extends ToolCallContract = ToolCallRecord,
  TChunkRow extends ChunkContract = ChunkRecord,
>(options: DurableChatOptions<TAdapter, TToolRow, TChunkRow>): Promise<DurableChatResult> {
  if (options.mode === "suspend" && options.turns === undefined) {
    throw new PerdureError(
      "bad_config",
      'The mode "suspend" needs a collection for "turns": the next run starts from it.',
    );
  }
  const named = options.chunks?.generationId;
  if (named !== undefined && options.generationId !== undefined && named !== options.generationId) {
    const text = `"generationId" is "${options.generationId}", and that of "chunks" is "${named}"`;
    throw new PerdureError("bad_config", `${text}: an answer and its chunks have the same. Give one of the two.`);
  }
  const run = new DurableRun(options);
  try {
    return await run.start();
  } catch (error) {
    // Whatever still works for this run must not go on behind its back.
    run.abort.abort(new PerdureError("bad_state", "The run has failed."));
    throw error;
  } finally {
    run.unlink();
  }
}

class DurableRun<TAdapter extends AnyTextAdapter, TToolRow extends ToolCallContract, TChunkRow extends ChunkContract> {
  readonly abort = new AbortController();
  readonly unlink: () => void;
  readonly #options: DurableChatOptions<TAdapter, TToolRow, TChunkRow>;
  readonly #generationId: string;
  readonly #turns: TurnLog;
  readonly #tools: readonly AnyTool[];

  constructor(options: DurableChatOptions<TAdapter, TToolRow, TChunkRow>) {
    this.#options = options;
    this.#generationId = options.generationId ?? options.chunks?.generationId ?? newId("generation");
    this.unlink = linkSignals([options.signal, options.abortController?.signal], this.abort);
    this.#turns = new TurnLog(options.turns, this.#generationId, () => this.#fence(undefined));
    this.#tools = durableTools(options, this.#generationId, this.abort.signal, (log) => this.#fence(log));
  }

  async start(): Promise<DurableChatResult> {
    await this.#turns.load();
    if (this.#turns.completed !== undefined) return this.#again(this.#turns.completed.finishReason);
    if (this.abort.signal.aborted) throw this.#cancelled();
    const waiting = suspendedCalls(this.#tools, openCalls(this.#turns.messages));
    const results: ModelMessage[] = [];
    if (waiting.length > 0) {
      const generationId = this.#generationId;
      // Again, because the run before may have ended between its turn and their rows.
      const ids = await openToolCalls(this.#tools, waiting, { generationId, write: this.#fence(undefined) });
      const { messages, open } = await toolCallResults(this.#tools, waiting, { generationId });
      if (open.length > 0) return this.#suspended(ids.filter((_, index) => open.includes(waiting[index]!)));
      results.push(...messages);
    }
    await this.#turns.begin();
    await this.#turns.add(results, this.#turns.chunkIndex);
    return this.#goOn();
  }

  /** Calls the model with what there is. */
  async #goOn(): Promise<DurableChatResult> {
    const before = textOf(this.#turns.messages);
    const sink = await this.#openSink();
    const runId = this.#options.runId ?? newId("run");
    const recorder = recordTurns(this.#turns, async () => {
      await sink.flush();
      return sink.counts().nextIndex;
    });
    const result = await readStream(
      this.#chat(runId, recorder.middleware),
      { signal: this.abort.signal, onChunk: this.#options.onChunk },
      {
        take: (chunk) => sink.take(chunk),
        close: async (completed) => {
          // Before the last chunk says that it is final: of an answer that readers take for complete no run is repeated.
          if (completed) await recorder.save();
          await sink.close(completed);
        },
        counts: () => sink.counts(),
      },
    );
    if (result.outcome === "completed") {
      await this.#turns.end("completed", result.nextIndex, result.finishReason);
      return this.#completed({ ...result, content: before + result.content });
    }
    await recorder.save();
    return this.#interrupted({ ...result, content: before + result.content }, runId);
  }

  async #interrupted(result: StreamResult, runId: string): Promise<SuspendedChat> {
    if (result.interrupts.length === 0) {
      const text = `The answer "${this.#generationId}" was stopped while the model still called tools: its agent loop came`;
      throw new PerdureError("limit", `${text} to its end. Allow more turns with "agentLoopStrategy".`);
    }
    const waiting = suspendedCalls(this.#tools, openCalls(this.#turns.messages));
    const generationId = this.#generationId;
    const pending = await openToolCalls(this.#tools, waiting, { generationId, write: this.#fence(undefined) });
    await this.#turns.end("suspended", result.nextIndex, result.finishReason);
    const mine = new Set(waiting.map(({ id }) => id));
    const { content, usage, nextIndex: chunks, finishReason } = result;
    const isOther = ({ toolCallId }: Interrupt) => toolCallId === undefined || !mine.has(toolCallId);
    const interrupts = result.interrupts.filter(isOther);
    return { ...this.#suspended(pending), content, chunks, finishReason, runId, interrupts, usage };
  }

  #suspended(pending: readonly string[]): SuspendedChat {
    const { messages, chunkIndex: chunks } = this.#turns;
    const said = { generationId: this.#generationId, content: textOf(messages), chunks, messages };
    return { outcome: "suspended", ...said, finishReason: "tool_calls", pending, interrupts: [] };
  }

  #completed({ content, lastText, nextIndex: chunks, finishReason, usage }: StreamResult): CompletedChat {
    const said = { generationId: this.#generationId, content, lastText, chunks, messages: this.#turns.messages };
    return { outcome: "completed", ...said, finishReason, usage };
  }

  /** An answer that an earlier run has completed. */
  async #again(finishReason: string | null): Promise<CompletedChat> {
    const { messages } = this.#turns;
    const { collection } = this.#options.chunks ?? {};
    // The run before may have ended between its answer and the end of its chunks.
    const chunks =
      collection === undefined
        ? 0
        : await finishChunks(collection, this.#generationId, this.#fence(rowsOf(collection).log));
    const said = { generationId: this.#generationId, content: textOf(messages), lastText: textOf(messages.slice(-1)) };
    return { outcome: "completed", ...said, chunks, messages, finishReason };
  }

  /** Where the chunks go, behind those of the turns so far. */
  async #openSink(): Promise<ChunkSink> {
    const { chunks, producer } = this.#options;
    if (chunks === undefined) return nowhere();
    const generationId = this.#generationId;
    const rows = rowsOf(chunks.collection);
    await rows.ready();
    const { hasPast, chunkIndex: startIndex } = this.#turns;
    if (hasPast) await deleteChunksFrom(chunks.collection, generationId, startIndex, this.#fence(rows.log));
    const when = () => this.#fence(rows.log).when ?? [];
    return chunkSink<TChunkRow>({ ...chunks, generationId, startIndex, when, producer });
  }

  #chat(runId: string, recorder: object): AsyncIterable<StreamChunk> {
    const { toolCalls: _1, chunks: _2, turns: _3, mode: _4, signal: _5, ...rest } = this.#options;
    const { when: _6, producer: _7, onChunk: _8, generationId: _9, ...settings } = rest;
    const call = {
      ...settings,
      runId,
      messages: [...(this.#options.messages ?? []), ...this.#turns.messages],
      tools: this.#tools,
      abortController: this.abort,
      context: { ...this.#options.context, generationId: this.#generationId },
      middleware: [...(this.#options.middleware ?? []), recorder],
    };
    // What `chat()` checks by type between adapter, tools, context and middleware was checked by the options.
    return chat(call as unknown as Parameters<typeof chat>[0]) as AsyncIterable<StreamChunk>;
  }

  /** What each write carries; with a log also what shuts out this run when another has taken up the answer there. */
  #fence(log: RowLog | undefined): RowOptions {
    const { when = [], producer } = this.#options;
    const given = typeof when === "function" ? when() : when;
    return { when: [...given, ...this.#turns.fence(log)], producer };
  }

  #cancelled(): GenerationError {
    const partial = { content: textOf(this.#turns.messages), chunks: this.#turns.chunkIndex };
    return new GenerationError("cancelled", "The answer was cancelled before it was complete.", partial, {
      cause: this.abort.signal.reason,
    });
  }
}

/** What the model has said in these turns. */
function textOf(messages: readonly ModelMessage[]): string {
  const texts = messages.map(({ role, content }) =>
    role === "assistant" && typeof content === "string" ? content : "",
  );
  return texts.join("");
}

function nowhere(): ChunkSink {
  const nothing = async () => {};
  return { take: nothing, close: nothing, flush: nothing, counts: () => ({ chunks: 0, nextIndex: 0 }) };
}

/** The tools for `chat()`: those that have no implementation here become rows. */
function durableTools<
  TAdapter extends AnyTextAdapter,
  TToolRow extends ToolCallContract,
  TChunkRow extends ChunkContract,
>(
  options: DurableChatOptions<TAdapter, TToolRow, TChunkRow>,
  generationId: string,
  signal: AbortSignal,
  fence: (log: Parameters<TurnLog["fence"]>[0]) => RowOptions,
): readonly AnyTool[] {
  const { tools = [], toolCalls, mode = "hold" } = options;
  if (toolCalls === undefined) return tools;
  const { collection, ...more } = toolCalls;
  const cancel = toolCalls.cancel ?? ((draft: TToolRow) => defaultCancel(draft));
  const settings = {
    ...more,
    mode,
    generationId,
    write: () => fence(rowsOf(collection).log),
    // A run that only ends here, and goes on elsewhere, takes its calls with it.
    cancel: (draft: TToolRow) => (isWanted(signal) ? cancel(draft) : false),
  } as unknown as OptionsArgument<DurableToolOptions<ToolLike, TToolRow, unknown>>[0];
  return tools.map((tool) => {
    if (tool.execute !== undefined || durableToolOf(tool) !== undefined || "~toolKind" in tool) return tool;
    const [made] = makeDurableTools([tool as ToolLike], collection, ...([settings] as never));
    return made as AnyTool;
  });
}

/** Whether an abort was somebody's wish, and not the end of a process or of its hold on the work. */
function isWanted({ reason }: AbortSignal): boolean {
  return !PerdureError.is(reason) || reason.code === "cancelled";
}

/** The calls of the last turn that have no result. */
function openCalls(messages: readonly ModelMessage[]): AgentToolCall[] {
  const answered = new Set(messages.map((message) => (message.role === "tool" ? message.toolCallId : undefined)));
  const last = messages.findLast((message) => message.role === "assistant");
  return (last?.toolCalls ?? [])
    .filter(({ id }) => !answered.has(id))
    .map(({ id, function: { name, arguments: text } }) => ({ id, name, arguments: text }));
}

/** Those calls whose tools end the run, and wait as rows. */
function suspendedCalls(tools: readonly AnyTool[], calls: readonly AgentToolCall[]): AgentToolCall[] {
  const names = new Set(tools.filter((tool) => durableToolOf(tool)?.mode === "suspend").map((tool) => tool.name));
  return calls.filter(({ name }) => names.has(name));
}
