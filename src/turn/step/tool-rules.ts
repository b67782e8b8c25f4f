import type { ModelMessage, ToolSet, TypedToolCall } from "ai";
import type { Identity } from "../../base/identity.ts";
import type { ToolCall, ToolRules } from "../../tool/runner.ts";
import { ask, isAsked } from "../policy.ts";
import { judge, type Judging, tellChanged, tellShown } from "./show-result.ts";
import type { PreparedTurn } from "./parts.ts";

/** A turn whose calls they are. */
interface RuledTurn extends Judging {
  readonly active: { readonly identity: Identity | undefined };
  readonly signal: AbortSignal;
  readonly turn: PreparedTurn;
  /** What tools and conditions get as their context. */
  readonly context: unknown;
  /** How many of its model calls are settled. */
  readonly called: number;
}

/** The rules of a turn for its calls, as they are when they are asked. */
export function rulesOf(run: RuledTurn): ToolRules {
  const { parts, asked, active } = run;
  return {
    ...{ clock: parts.host.clock, signal: run.signal, identity: active.identity },
    get context() {
      return run.context;
    },
    get stepNumber() {
      return Math.max(0, run.called - 1);
    },
    get timeout() {
      return run.turn.config.timeout;
    },
    get whole() {
      return isAsked(asked, "afterToolCall");
    },
    approval: (call, messages) => configured(run, call, [...messages]),
    before: (called) => ask(asked, "beforeToolCall", called),
    // Nothing of a call inside another is stored, so the original of a changed result is gone.
    ended: async (tool, called, ended, durationMs) => {
      const verdict = await judge(run, tool, called, ended, durationMs);
      tellChanged(run, called, verdict);
      await tellShown(run, called, verdict, durationMs);
      return verdict.shown;
    },
    bind: (name, tool) => run.turn.bind(name, tool),
    as: (work) => asked.as(work),
    odd: (error) => asked.failed(error),
    keep: (text) => parts.keep(text),
  };
}

/** What the turn's `toolApproval` says of a call. */
function configured(run: RuledTurn, call: ToolCall, messages: ModelMessage[]): unknown {
  const { tools, config } = run.turn;
  const { toolApproval } = config;
  if (toolApproval === undefined) return undefined;
  const { toolCallId, toolName, input } = call;
  const shared = { messages, runtimeContext: run.context };
  if (typeof toolApproval === "function") {
    const toolCall = { type: "tool-call", toolCallId, toolName, input } as TypedToolCall<ToolSet>;
    return toolApproval({ ...shared, toolCall, tools, toolsContext: {} as never });
  }
  const own = Object.hasOwn(toolApproval, toolName) ? (toolApproval as Record<string, unknown>)[toolName] : undefined;
  if (typeof own !== "function") return own;
  return (own as (input: unknown, options: unknown) => unknown)(input, {
    ...shared,
    toolCallId,
    toolContext: undefined,
  });
}
