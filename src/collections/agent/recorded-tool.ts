import type { AnyTool, ToolExecutionContext } from "@tanstack/ai";
import { PerdureError, errorText } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import type { ToolCallRecord } from "../contract.ts";
import { rowsOf } from "../rows.ts";
import type { RowCollection } from "../rows.ts";
import { durableToolOf, makeDurableTool } from "../tool/durable-tool.ts";
import { isUnwritable } from "../tool/persist.ts";
import { defaultResult, defaultRow, isSettled, toolCallRowId } from "../tool/tool-row.ts";
import type { ToolLike } from "../tool/tool-types.ts";

/** The run whose calls are recorded. */
export interface RecordedRun {
  readonly toolCalls: RowCollection<ToolCallRecord>;
  readonly generationId: string;
  readonly parentGenerationId: string | undefined;
}

/**
 * A tool whose calls are rows. One with an implementation still runs here; its row says what came of it, and a later
 * run of the same id takes the result from the row instead of running it again. One without is executed elsewhere.
 */
export function recordedTool(tool: AnyTool, run: RecordedRun): AnyTool {
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
