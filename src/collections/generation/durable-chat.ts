import { chat } from "@tanstack/ai";
import type { AnyTextAdapter, AnyTool, ModelMessage, StreamChunk } from "@tanstack/ai";
import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import type { ChunkContract, ChunkRecord, ToolCallContract, ToolCallRecord } from "../contract.ts";
import type { RowLog } from "../log/row-log.ts";
import { linkSignals } from "../link-signals.ts";
import { rowsOf } from "../rows.ts";
import type { RowOptions } from "../rows.ts";
import { openToolCalls, toolCallResults } from "../tool/suspended-calls.ts";
import { deleteChunksFrom, finishChunks } from "./chunk.ts";
import { chunkSink } from "./chunk-sink.ts";
import type { ChunkSink } from "./chunk-sink.ts";
import { durableTools, openCalls, suspendedCalls } from "./durable-chat-tools.ts";
import type { CompletedChat, DurableChatOptions, DurableChatResult, SuspendedChat } from "./durable-chat-types.ts";
import { GenerationError } from "./error.ts";
import { readStream } from "./read-stream.ts";
import type { StreamResult } from "./read-stream.ts";
import { recordTurns } from "./record-turns.ts";
import { TurnLog } from "./turn-log.ts";

/**
 * `chat()` whose tool calls, chunks and turns are rows, so that its answer outlives the process that works on it.
 *
 * - `hold`: the run waits until whoever executes tools has written their results.
 * - `suspend`: when the model calls durable tools, the run ends with outcome `suspended`. All their calls are pending
 *   rows by then. Call it again with the same `generationId`, here or in any other process: while results are
 *   missing it says `suspended` again and does not call the model; when they are there it goes on.
 *
 * With `turns` it can be called again with the same `generationId` in both modes, also after a crash: finished turns
 * and their tools are not repeated, the turn that was cut off is, and a complete answer is given again as it was.
 * The latest run has the answer: earlier ones that still live are shut out.
 *
 * @throws GenerationError as `streamToCollection` does. PerdureError `limit` when the agent loop came to its end while
 *   the model still called tools (see `agentLoopStrategy`), `bad_config` for options that do not go together.
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
  private readonly options: DurableChatOptions<TAdapter, TToolRow, TChunkRow>;
  private readonly generationId: string;
  private readonly turns: TurnLog;
  private readonly tools: readonly AnyTool[];

  constructor(options: DurableChatOptions<TAdapter, TToolRow, TChunkRow>) {
    this.options = options;
    this.generationId = options.generationId ?? options.chunks?.generationId ?? newId("generation");
    this.unlink = linkSignals([options.signal, options.abortController?.signal], this.abort);
    this.turns = new TurnLog(options.turns, this.generationId, () => this.fence(undefined));
    this.tools = durableTools(options, this.generationId, this.abort.signal, (log) => this.fence(log));
  }

  async start(): Promise<DurableChatResult> {
    await this.turns.load();
    if (this.turns.completed !== undefined) return this.again(this.turns.completed.finishReason);
    if (this.abort.signal.aborted) throw this.cancelled();
    const waiting = suspendedCalls(this.tools, openCalls(this.turns.messages));
    const results: ModelMessage[] = [];
    if (waiting.length > 0) {
      const { generationId } = this;
      // Again, because the run before may have ended between its turn and their rows.
      const ids = await openToolCalls(this.tools, waiting, { generationId, write: this.fence(undefined) });
      const { messages, open } = await toolCallResults(this.tools, waiting, { generationId });
      if (open.length > 0) return this.suspended(ids.filter((_, index) => open.includes(waiting[index]!)));
      results.push(...messages);
    }
    await this.turns.begin();
    await this.turns.add(results, this.turns.chunkIndex);
    return this.goOn();
  }

  /** Calls the model with what there is. */
  private async goOn(): Promise<DurableChatResult> {
    const before = textOf(this.turns.messages);
    const sink = await this.openSink();
    const runId = this.options.runId ?? newId("run");
    const recorder = recordTurns(this.turns, async () => {
      await sink.flush();
      return sink.counts().nextIndex;
    });
    const result = await readStream(this.chat(runId, recorder.middleware), this.reading(), {
      take: (chunk) => sink.take(chunk),
      close: async (completed) => {
        // Before the last chunk says that it is final: of an answer that readers take for complete no run is repeated.
        if (completed) await recorder.save();
        await sink.close(completed);
      },
      counts: () => sink.counts(),
    });
    if (result.outcome === "completed") {
      await this.turns.end("completed", result.nextIndex, result.finishReason);
      return this.completed({ ...result, content: before + result.content });
    }
    await recorder.save();
    return this.interrupted({ ...result, content: before + result.content }, runId);
  }

  private async interrupted(result: StreamResult, runId: string): Promise<SuspendedChat> {
    if (result.interrupts.length === 0) {
      const text = `The answer "${this.generationId}" was stopped while the model still called tools: its agent loop came`;
      throw new PerdureError("limit", `${text} to its end. Allow more turns with "agentLoopStrategy".`);
    }
    const waiting = suspendedCalls(this.tools, openCalls(this.turns.messages));
    const { generationId } = this;
    const pending = await openToolCalls(this.tools, waiting, { generationId, write: this.fence(undefined) });
    await this.turns.end("suspended", result.nextIndex, result.finishReason);
    const mine = new Set(waiting.map(({ id }) => id));
    const { content, usage, nextIndex: chunks, finishReason } = result;
    return {
      ...this.suspended(pending),
      content,
      chunks,
      finishReason,
      runId,
      interrupts: result.interrupts.filter(({ toolCallId }) => toolCallId === undefined || !mine.has(toolCallId)),
      ...(usage === undefined ? {} : { usage }),
    };
  }

  private suspended(pending: readonly string[]): SuspendedChat {
    const { generationId, turns } = this;
    const { messages, chunkIndex: chunks } = turns;
    const content = textOf(messages);
    return {
      outcome: "suspended",
      generationId,
      content,
      chunks,
      messages,
      finishReason: "tool_calls",
      pending,
      interrupts: [],
    };
  }

  private completed({ content, lastText, nextIndex: chunks, finishReason, usage }: StreamResult): CompletedChat {
    const { generationId, turns } = this;
    const { messages } = turns;
    return {
      outcome: "completed",
      generationId,
      content,
      lastText,
      chunks,
      messages,
      finishReason,
      ...(usage === undefined ? {} : { usage }),
    };
  }

  /** An answer that an earlier run has completed. */
  private async again(finishReason: string | null): Promise<CompletedChat> {
    const { options, generationId, turns } = this;
    const { messages } = turns;
    const { collection } = options.chunks ?? {};
    const fence = collection === undefined ? {} : this.fence(rowsOf(collection).log);
    // The run before may have ended between its answer and the end of its chunks.
    const chunks = collection === undefined ? 0 : await finishChunks(collection, generationId, fence);
    const lastText = textOf(messages.slice(-1));
    return { outcome: "completed", generationId, content: textOf(messages), lastText, chunks, messages, finishReason };
  }

  /** Where the chunks go, behind those of the turns so far. */
  private async openSink(): Promise<ChunkSink> {
    const { options, generationId, turns } = this;
    if (options.chunks === undefined) return nowhere();
    const { collection } = options.chunks;
    const { log } = rowsOf(collection);
    await rowsOf(collection).ready();
    const startIndex = turns.chunkIndex;
    if (turns.hasPast) await deleteChunksFrom(collection, generationId, startIndex, this.fence(log));
    const { producer } = options;
    const when = () => this.fence(log).when ?? [];
    return chunkSink<TChunkRow>({ ...options.chunks, generationId, startIndex, when, producer });
  }

  private chat(runId: string, recorder: object): AsyncIterable<StreamChunk> {
    const {
      toolCalls: _1,
      chunks: _2,
      turns: _3,
      mode: _4,
      signal: _5,
      when: _6,
      producer: _7,
      ...rest
    } = this.options;
    const { onChunk: _8, generationId: _9, ...settings } = rest;
    const call = {
      ...settings,
      runId,
      messages: [...(this.options.messages ?? []), ...this.turns.messages],
      tools: this.tools,
      abortController: this.abort,
      context: { ...this.options.context, generationId: this.generationId },
      middleware: [...(this.options.middleware ?? []), recorder],
    };
    // What `chat()` checks by type between adapter, tools, context and middleware was checked by the options.
    return chat(call as unknown as Parameters<typeof chat>[0]) as AsyncIterable<StreamChunk>;
  }

  private reading() {
    const { onChunk } = this.options;
    return { signal: this.abort.signal, ...(onChunk === undefined ? {} : { onChunk }) };
  }

  /** What each write carries; with a log also what shuts out this run when another has taken up the answer there. */
  private fence(log: RowLog | undefined): RowOptions {
    const { when = [], producer } = this.options;
    const given = typeof when === "function" ? when() : when;
    return {
      when: [...given, ...(log === undefined ? [] : this.turns.fence(log))],
      ...(producer === undefined ? {} : { producer }),
    };
  }

  private cancelled(): GenerationError {
    const partial = { content: textOf(this.turns.messages), chunks: this.turns.chunkIndex };
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
