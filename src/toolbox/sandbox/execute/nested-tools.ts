import type { Tool } from "ai";
import { type Clock, newId } from "../../../base/id.ts";
import { readNeed } from "../../../tool/action-bind.ts";
import type { DurableExecutionOptions } from "../../../tool/define.ts";
import type { NestedOutcome } from "../../../tool/park.ts";
import { hasProtoField, isDeeperThan, MAX_INPUT_DEPTH, PROTO_TEXT } from "../../../tool/plain-json.ts";
import { runCall } from "../../../tool/run-call.ts";

/** One call of a tool from inside of code. */
export interface NestedToolCall {
  readonly name: string;
  readonly tool: Tool;
  readonly input: unknown;
  /** The number of the call in the sandbox. */
  readonly index: number;
  readonly approved: boolean;
  /** Aborts when the code has ended. */
  readonly signal: AbortSignal;
}

const systemClock: Clock = {
  now: () => Date.now(),
  after: (ms, work) => {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
};

/**
 * Runs a tool for the code that called it, by the rules of the turn. Where there is no turn the input is checked all
 * the same, and a tool that needs a person's approval fails, because nobody can be asked.
 */
export async function runNestedTool(call: NestedToolCall, options: DurableExecutionOptions): Promise<NestedOutcome> {
  const { name, tool, input, index, approved, signal } = call;
  if (isDeeperThan(input, MAX_INPUT_DEPTH)) {
    return failed(`The arguments of "${name}" are nested deeper than ${MAX_INPUT_DEPTH} levels.`);
  }
  if (hasProtoField(input)) return failed(`The input of "${name}" ${PROTO_TEXT}`);
  if (options.turn !== undefined) {
    return options.turn.runNested({ toolName: name, tool, input, index, signal, ...(approved && { approved }) });
  }
  // Who cannot say whether a person has to be asked has not said no, and here nobody can be asked.
  const rule = (tool as { needsApproval?: unknown }).needsApproval;
  const need = rule === undefined ? ({ kind: "free" } as const) : readNeed(await approvalOf(call, options));
  if (need.kind === "answer") return { kind: "output", output: need.output };
  if (need.kind === "ask") {
    return failed(
      `"${name}" needs a person's approval, and there is no way to wait for one from inside of code here. ` +
        "Call it directly instead, as a tool of its own.",
    );
  }
  const outcome = await runCall(
    tool,
    { toolCallId: `${options.toolCallId}/${index}`, toolName: name, input },
    {
      messages: options.messages,
      abortSignal: call.signal,
      // Ids of providers come again in other turns: without a key of ours, no call is the same as another.
      idempotencyKey: `${options.idempotencyKey ?? newId("call")}/${index}`,
      clock: systemClock,
      runtimeContext: options.context,
      progress: () => {},
      keep: async () => undefined,
    },
    { validate: true },
  );
  if (outcome.kind !== "parked") return outcome;
  return failed(`"${name}" waits for a person, and cannot do so from inside of code.`);
}

async function approvalOf({ tool, input, index }: NestedToolCall, options: DurableExecutionOptions): Promise<unknown> {
  const own = (tool as { needsApproval?: unknown }).needsApproval;
  if (typeof own !== "function") return own;
  const { messages, context } = options;
  const toolCallId = `${options.toolCallId}/${index}`;
  return (own as (input: unknown, options: unknown) => unknown)(input, {
    ...{ toolCallId, messages, context },
    experimental_context: context,
  });
}

function failed(errorText: string): NestedOutcome {
  return { kind: "error", errorText };
}
