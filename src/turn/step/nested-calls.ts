import type { ModelMessage } from "ai";
import { errorText } from "../../error.ts";
import { type ToolPart, toolName } from "../../message/types.ts";
import type { NestedCall, NestedOutcome, ToolTurn } from "../../tool/park.ts";
import { checkInput, runCall } from "../../tool/run-call.ts";
import { callContext, toolTimeout } from "./call-context.ts";
import type { ToolCallResultContext } from "./config.ts";
import { watch } from "./model-call.ts";
import { needsApproval } from "./needs-approval.ts";
import type { StepRun } from "./step-run.ts";

/**
 * What a call may ask of the turn that runs it. Calls inside of it are on nobody's books: the one around them is, and
 * is never begun a second time, so that none of them is either.
 */
export function toolTurn(run: StepRun, outer: ToolPart, messages: readonly ModelMessage[]): ToolTurn {
  return {
    runNested: async (call) => {
      try {
        return await runNested(run, outer, call, messages);
      } catch (thrown) {
        // A rule that cannot judge a call has not let it through.
        return failed(errorText(thrown));
      }
    },
  };
}

async function runNested(
  run: StepRun,
  outer: ToolPart,
  call: NestedCall,
  messages: readonly ModelMessage[],
): Promise<NestedOutcome> {
  const { toolName: name } = call;
  const tool = run.plan.bind(name, call.tool);
  if (tool.execute === undefined) {
    return failed(
      `The tool "${name}" runs on the user's device and cannot be called from inside "${toolName(outer)}".`,
    );
  }
  const input = await checkInput(tool, name, call.input);
  const toolCallId = `${outer.toolCallId}/${call.index}`;
  const part: ToolPart = { type: `tool-${name}`, toolCallId, state: "input-available", input };
  if (call.approved !== true) {
    const need = await needsApproval(run, part, tool, messages);
    if (need !== "free") {
      if ("known" in need) return { kind: "output", output: need.known };
      return need.denied
        ? failed(need.reason ?? `The call of "${name}" was denied.`)
        : { kind: "ask", reason: need.reason, ...(need.waitMs !== undefined && { waitMs: need.waitMs }) };
    }
  }
  const { plan, desk, active } = run;
  const { clock } = desk.host;
  const decision = (await plan.beforeToolCall(callContext(run, part, messages))) ?? { action: "allow" };
  if (decision.action === "block") return failed(decision.reason ?? `The call of "${name}" was blocked.`);
  if (decision.action === "substitute") return { kind: "output", output: decision.output };
  const given: ToolPart = { ...part, input: decision.input ?? input };
  const began = clock.now();
  const abortSignal = call.signal === undefined ? run.signal : AbortSignal.any([run.signal, call.signal]);
  const outcome = await plan.runTool(() =>
    runCall(
      tool,
      { toolCallId, toolName: name, input: given.input },
      {
        ...{ messages: [...messages], identity: active.identity, abortSignal, clock, runtimeContext: run.context },
        idempotencyKey: `${active.builder.id}:${toolCallId}`,
        progress: () => {},
        keep: (text) => plan.keep(text),
      },
      { timeoutMs: toolTimeout(run, given, tool) },
    ),
  );
  if (outcome.kind === "aborted") return outcome;
  const ended =
    outcome.kind === "parked"
      ? failed(`The tool "${name}" waits for a person, and cannot do so inside "${toolName(outer)}".`)
      : outcome;
  const { afterToolCall } = plan;
  if (afterToolCall !== undefined) {
    const context = { ...callContext(run, given, messages), durationMs: clock.now() - began };
    const result =
      ended.kind === "output"
        ? { ...context, success: true, output: ended.output }
        : { ...context, success: false, error: ended.errorText };
    await watch(run, () => afterToolCall(result as ToolCallResultContext));
  }
  return ended;
}

function failed(text: string): { readonly kind: "error"; readonly errorText: string } {
  return { kind: "error", errorText: text };
}
