import type { ModelMessage, Tool } from "ai";
import { type ToolPart, toolName } from "../../message/types.ts";
import { isRecord } from "../../message/json.ts";
import { oddAnswer } from "../../tool/odd-answer.ts";
import { toolOptionsOf } from "../../tool/define.ts";
import { toPlainJson } from "../../tool/plain-json.ts";
import { failedCall } from "../../tool/run-call.ts";
import type { ToolCallContext, ToolCallDecision } from "./config.ts";
import type { EndedCall } from "./judge-result.ts";
import type { StepRun } from "./step-run.ts";

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
    const said: unknown = (await run.plan.beforeToolCall(called)) ?? undefined;
    if (said === undefined) return { action: "allow" };
    if (!isDecision(said)) throw oddAnswer("beforeToolCall", said, "nothing, or an action: allow, block or substitute");
    if (said.action !== "substitute") return said;
    return { ...said, output: toPlainJson(said.output, `What stands for the output of "${called.toolName}"`) };
  } catch (thrown) {
    return { action: "fail", failure: failedCall(thrown) };
  }
}

function isDecision(said: unknown): said is ToolCallDecision {
  return isRecord(said) && (said.action === "allow" || said.action === "block" || said.action === "substitute");
}

/** What a call may take: by the turn's own rule for the tool, the tool's, or the turn's for all tools. */
export function toolTimeout(run: StepRun, part: ToolPart, tool: Tool): number | undefined {
  const { timeout } = run.turn.config;
  const bounds = typeof timeout === "object" ? timeout : {};
  const own = (bounds.tools as Record<string, number> | undefined)?.[`${toolName(part)}Ms`];
  return own ?? toolOptionsOf(tool).timeoutMs ?? bounds.toolMs;
}
