import type { ModelMessage, Tool, ToolApprovalStatus, TypedToolCall, ToolSet } from "ai";
import { type ToolPart, toolName } from "../../message/types.ts";
import { isRecord } from "../../message/json.ts";
import { approvalText, readNeed } from "../../tool/action-bind.ts";
import { oddAnswer } from "../../tool/odd-answer.ts";
import type { ChatHooks, ChatTurnOptions } from "../engine/chat-types.ts";
import type { StepRun } from "./step-run.ts";

/** Whether a call may run, must wait for a person, or may not run at all. */
export type ApprovalNeed =
  | "free"
  /** `summary` and `waitMs`: what the person is told, and how long the question may wait, where the tool says so. */
  | {
      readonly denied: boolean;
      readonly reason: string | undefined;
      readonly summary?: string;
      readonly waitMs?: number;
    }
  /** It was done before: this is its output, and nobody has to be asked. */
  | { readonly known: unknown };

type Judged = Pick<StepRun, "turn" | "context"> & {
  readonly options: Pick<ChatTurnOptions, "identity">;
  readonly desk: { readonly hooks: Pick<ChatHooks, "failed"> };
};

/** What `toolApproval` may say of a call. */
const STATUSES: ReadonlySet<unknown> = new Set(["not-applicable", "approved", "denied", "user-approval"]);

/**
 * Asks the turn's `toolApproval`, then the tool's own `needsApproval`. What they throw ends the turn: a call that
 * cannot be judged must not run. An answer that is none asks a person, and is reported.
 */
export async function needsApproval(
  run: Judged,
  part: ToolPart,
  tool: Tool,
  messages: readonly ModelMessage[],
): Promise<ApprovalNeed> {
  const { hooks } = run.desk;
  const status: unknown = await configured(run, part, messages);
  const { type, reason } = readStatus(status);
  if (!STATUSES.has(type)) {
    hooks.failed(oddAnswer("toolApproval", status, [...STATUSES].join(", ")));
    return { denied: false, reason: undefined };
  }
  if (type === "approved") return "free";
  if (type === "denied" || type === "user-approval") return { denied: type === "denied", reason };
  const own = (tool as { needsApproval?: unknown }).needsApproval;
  if (own === undefined) return "free";
  const needed: unknown =
    typeof own === "function"
      ? await (own as (input: unknown, options: unknown) => unknown)(part.input, {
          toolCallId: part.toolCallId,
          messages,
          identity: run.options.identity,
          context: run.context,
          experimental_context: run.context,
        })
      : own;
  const need = readNeed(needed, (error) => hooks.failed(error));
  if (need.kind === "free") return "free";
  if (need.kind === "answer") return { known: need.output };
  const { expiresInMs: waitMs } = need;
  const summary = approvalText(need);
  return {
    denied: false,
    reason: summary,
    ...(summary !== undefined && { summary }),
    ...(waitMs !== undefined && { waitMs }),
  };
}

function readStatus(status: unknown): { type: unknown; reason?: string | undefined } {
  if (status === undefined || status === null) return { type: "not-applicable" };
  if (!isRecord(status)) return { type: status };
  return { type: status.type, reason: typeof status.reason === "string" ? status.reason : undefined };
}

async function configured(run: Judged, part: ToolPart, messages: readonly ModelMessage[]): Promise<ToolApprovalStatus> {
  const { toolApproval } = run.turn.config;
  const name = toolName(part);
  if (toolApproval === undefined) return undefined;
  const shared = { messages: [...messages], runtimeContext: run.context };
  if (typeof toolApproval === "function") {
    const toolCall = { type: "tool-call", toolCallId: part.toolCallId, toolName: name, input: part.input };
    const { tools } = run.turn;
    return toolApproval({ ...shared, toolCall: toolCall as TypedToolCall<ToolSet>, tools, toolsContext: {} as never });
  }
  const own = Object.hasOwn(toolApproval, name) ? (toolApproval as Record<string, unknown>)[name] : undefined;
  if (typeof own !== "function") return own as ToolApprovalStatus;
  const options = { ...shared, toolCallId: part.toolCallId, toolContext: undefined };
  return (own as (input: unknown, options: unknown) => ToolApprovalStatus)(part.input, options);
}
