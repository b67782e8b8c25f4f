import type { ModelMessage, Tool } from "ai";
import { type ToolPart, toolName } from "../../message/types.ts";
import { toolOptionsOf } from "../../tool/define.ts";
import { toPlainJson } from "../../tool/plain-json.ts";
import { type CallOutcome, failedCall } from "../../tool/run-call.ts";
import type { ToolCallContext, ToolCallDecision, ToolCallResultContext } from "./config.ts";
import { watch } from "./model-call.ts";
import type { StepRun } from "./step-run.ts";

/** How a call ended, whether its tool ran or not. */
export type EndedCall = Extract<CallOutcome, { kind: "output" | "error" }>;

/** A call as hooks are told of it. */
export function callContext(run: StepRun, part: ToolPart, messages: readonly ModelMessage[]): ToolCallContext {
  return {
    type: "tool-call",
    toolCallId: part.toolCallId,
    toolName: toolName(part),
    input: part.input,
    ...(part.type === "dynamic-tool" && { dynamic: true }),
    stepNumber: Math.max(0, run.called - 1),
    identity: run.active.identity,
    messages,
    abortSignal: run.signal,
  } as ToolCallContext;
}

/** What `beforeToolCall` says to a call. What it throws is the call's error: the tool does not run, the turn goes on. */
export async function askBefore(
  run: StepRun,
  called: ToolCallContext,
): Promise<ToolCallDecision | { readonly action: "fail"; readonly failure: EndedCall }> {
  try {
    const decision = (await run.plan.beforeToolCall(called)) ?? { action: "allow" };
    if (decision.action !== "substitute") return decision;
    return { ...decision, output: toPlainJson(decision.output, `What stands for the output of "${called.toolName}"`) };
  } catch (thrown) {
    return { action: "fail", failure: failedCall(thrown) };
  }
}

/** Tells `afterToolCall` how a call ended. What it throws is reported. */
export async function tellEnd(
  run: StepRun,
  called: ToolCallContext,
  ended: EndedCall,
  durationMs: number,
): Promise<void> {
  const { afterToolCall } = run.plan;
  if (afterToolCall === undefined) return;
  const result =
    ended.kind === "output" ? { success: true, output: ended.output } : { success: false, error: ended.error };
  await watch(run, () => afterToolCall({ ...called, durationMs, ...result } as ToolCallResultContext));
}

/** What a call may take: by the turn's own rule for the tool, the tool's, or the turn's for all tools. */
export function toolTimeout(run: StepRun, part: ToolPart, tool: Tool): number | undefined {
  const { timeout } = run.turn.config;
  const bounds = typeof timeout === "object" ? timeout : {};
  const own = (bounds.tools as Record<string, number> | undefined)?.[`${toolName(part)}Ms`];
  return own ?? toolOptionsOf(tool).timeoutMs ?? bounds.toolMs;
}
