import type { ModelMessage, Tool } from "ai";
import { type ToolPart, toolName } from "../../message/types.ts";
import { approvalOf } from "../../tool/call-approval.ts";
import type { NestedCall, NestedOutcome, ToolTurn } from "../../tool/park.ts";
import { checkInput, failedCall, runCall } from "../../tool/run-call.ts";
import { askBefore, callContext, toolTimeout } from "./call-context.ts";
import type { ToolCallContext } from "./config.ts";
import { type EndedCall, judge, tellChanged, tellShown } from "./judge-result.ts";
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
        return plain(await runNested(run, outer, call, messages));
      } catch (thrown) {
        // A rule that cannot judge a call has not let it through.
        return plain(failedCall(thrown));
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
    return failedCall(
      `The tool "${name}" runs on the user's device and cannot be called from inside "${toolName(outer)}".`,
    );
  }
  const input = await checkInput(tool, name, call.input);
  const toolCallId = `${outer.toolCallId}/${call.index}`;
  const part: ToolPart = { type: `tool-${name}`, toolCallId, state: "input-available", input };
  const called = callContext(run, part, messages);
  if (call.approved !== true) {
    const need = await needsApproval(run, part, tool, messages);
    if (need !== "free") {
      if ("known" in need) return conclude(run, tool, called, { kind: "output", output: need.known });
      return need.denied
        ? failedCall(need.reason ?? `The call of "${name}" was denied.`)
        : { kind: "ask", reason: need.reason, ...(need.waitMs !== undefined && { waitMs: need.waitMs }) };
    }
  }
  const { plan, desk, active } = run;
  const { clock } = desk.host;
  const decision = await askBefore(run, called);
  if (decision.action === "fail") return conclude(run, tool, called, decision.failure);
  if (decision.action === "block")
    return conclude(run, tool, called, failedCall(decision.reason ?? `The call of "${name}" was blocked.`));
  if (decision.action === "substitute") return conclude(run, tool, called, { kind: "output", output: decision.output });
  const given: ToolPart = { ...part, input: decision.input ?? input };
  const began = clock.now();
  const abortSignal = call.signal === undefined ? run.signal : AbortSignal.any([run.signal, call.signal]);
  const outcome = await plan.runTool(() =>
    runCall(
      tool,
      { toolCallId, toolName: name, input: given.input },
      {
        ...{ messages: [...messages], identity: active.identity, abortSignal, clock, runtimeContext: run.context },
        approval: call.approved === true ? approvalOf(desk.host, active.builder.id, outer.toolCallId) : undefined,
        idempotencyKey: `${active.builder.id}:${toolCallId}`,
        progress: () => {},
        keep: (text) => plan.keep(text),
      },
      { timeoutMs: toolTimeout(run, given, tool), whole: plan.afterToolCall !== undefined },
    ),
  );
  if (outcome.kind === "aborted") return outcome;
  const ended =
    outcome.kind === "parked"
      ? failedCall(`The tool "${name}" waits for a person, and cannot do so inside "${toolName(outer)}".`)
      : outcome;
  return conclude(run, tool, { ...called, input: given.input } as ToolCallContext, ended, clock.now() - began);
}

/** What the code around it reads. Nothing of it is stored, so that of a result which was changed the original is gone. */
async function conclude(
  run: StepRun,
  tool: Tool,
  called: ToolCallContext,
  ended: EndedCall,
  durationMs = 0,
): Promise<EndedCall> {
  const verdict = await judge(run, tool, called, ended, durationMs);
  tellChanged(run, called, verdict);
  await tellShown(run, called, verdict, durationMs);
  return verdict.shown;
}

/** What was thrown is for hooks; whoever calls reads the text. */
function plain(outcome: NestedOutcome): NestedOutcome {
  return outcome.kind === "error" ? { kind: "error", errorText: outcome.errorText } : outcome;
}
