import type { AnyTextAdapter, AnyTool, ModelMessage } from "@tanstack/ai";
import { PerdureError } from "../../base/error.ts";
import type { AgentToolCall, ChunkContract, ToolCallContract } from "../contract.ts";
import { rowsOf } from "../rows.ts";
import type { RowOptions } from "../rows.ts";
import { durableToolOf, makeDurableTools } from "../tool/durable-tool.ts";
import { defaultCancel } from "../tool/tool-row.ts";
import type { OptionsArgument, DurableToolOptions, ToolLike } from "../tool/tool-types.ts";
import type { DurableChatOptions } from "./durable-chat-types.ts";
import type { TurnLog } from "./turn-log.ts";

/** The tools for `chat()`: those that have no implementation here become rows. */
export function durableTools<
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
export function openCalls(messages: readonly ModelMessage[]): AgentToolCall[] {
  const answered = new Set(messages.map((message) => (message.role === "tool" ? message.toolCallId : undefined)));
  const last = messages.findLast((message) => message.role === "assistant");
  return (last?.toolCalls ?? [])
    .filter(({ id }) => !answered.has(id))
    .map(({ id, function: { name, arguments: text } }) => ({ id, name, arguments: text }));
}

/** Those calls whose tools end the run, and wait as rows. */
export function suspendedCalls(tools: readonly AnyTool[], calls: readonly AgentToolCall[]): AgentToolCall[] {
  const names = new Set(tools.filter((tool) => durableToolOf(tool)?.mode === "suspend").map((tool) => tool.name));
  return calls.filter(({ name }) => names.has(name));
}
