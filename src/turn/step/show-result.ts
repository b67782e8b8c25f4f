import type { Tool } from "ai";
import { cutText } from "../../message/cut-value.ts";
import { isRecord } from "../../base/json.ts";
import { boundOutput, MAX_ERROR_BYTES } from "../../tool/bound-output.ts";
import type { JudgedCall, ReturnedCall } from "../../tool/call-book.ts";
import { toolOptionsOf } from "../../tool/define.ts";
import { oddAnswer } from "../../tool/odd-answer.ts";
import { toPlainJson } from "../../tool/plain-json.ts";
import type { EndedCall } from "../../tool/runner.ts";
import type { ToolCallContext, ToolCallResultContext, ToolResultDecision } from "../../tool/call-hooks.ts";
import { ask, type AskedTurn, isAsked, tell } from "../policy.ts";
import type { StepParts } from "./parts.ts";

const WITHHELD_TEXT = "The result was withheld.";

/** Where a call has ended: in a turn that runs, or after the one that it was of. */
export interface Judging {
  readonly parts: Pick<StepParts, "host" | "keep">;
  readonly asked: AskedTurn;
}

/** A call that has ended, as hooks are told of it. */
interface Verdict {
  /** What is shown of it. */
  readonly shown: EndedCall;
  readonly action: ToolResultDecision["action"] | undefined;
}

/**
 * Asks `afterToolCall` what of a result is shown; no answer: all. If it throws or decides nonsense, the result is withheld and
 * that is reported: the hook may have meant to hide it.
 */
export async function judge(
  { parts, asked }: Judging,
  tool: Tool | undefined,
  called: ToolCallContext,
  ended: EndedCall,
  durationMs: number,
): Promise<Verdict> {
  const bound = (output: unknown) => boundOutput(output, toolOptionsOf(tool), (text) => parts.keep(text));
  if (!isAsked(asked, "afterToolCall")) return { shown: ended, action: undefined };
  try {
    const said: unknown = (await ask(asked, "afterToolCall", resultContext(called, ended, durationMs))) ?? undefined;
    if (said === undefined) {
      const shown: EndedCall = ended.kind === "error" ? ended : { kind: "output", output: await bound(ended.output) };
      return { shown, action: undefined };
    }
    const { action, output, reason } = readDecision(said);
    if (action === "replace") {
      const plain = toPlainJson(output, `What replaces the output of "${called.toolName}"`);
      return { shown: { kind: "output", output: await bound(plain) }, action };
    }
    const text = typeof reason === "string" && reason !== "" ? cutText(reason, MAX_ERROR_BYTES) : WITHHELD_TEXT;
    return { shown: { kind: "output", output: text }, action };
  } catch (thrown) {
    asked.failed(thrown);
    return { shown: { kind: "output", output: WITHHELD_TEXT }, action: "withhold" };
  }
}

function readDecision(said: unknown): {
  readonly action: "replace" | "withhold";
  readonly output?: unknown;
  readonly reason?: unknown;
} {
  if (isRecord(said) && (said.action === "replace" || said.action === "withhold"))
    return { ...said, action: said.action };
  const given = isRecord(said) && "action" in said ? said.action : said;
  throw oddAnswer("afterToolCall", given, "nothing, or an action: replace or withhold");
}

/** Says that a result is shown as something else. */
export function tellChanged(
  { parts, asked }: Judging,
  { toolCallId, toolName }: ToolCallContext,
  { action }: Verdict,
): void {
  if (action === undefined) return;
  parts.host.emit("chat:result:changed", { requestId: asked.id, toolCallId, toolName, action });
}

/** Tells those who only watch of a result as it is shown. */
export function tellShown(
  { asked }: Judging,
  called: ToolCallContext,
  { shown }: Verdict,
  durationMs: number,
): Promise<void> {
  return tell(asked, "afterToolCall", resultContext(called, shown, durationMs));
}

/** How a call ended, as it is stored until it is judged. */
export function toStore(ended: EndedCall): ReturnedCall {
  return ended.kind === "output" ? { output: ended.output } : { errorText: ended.errorText };
}

/** The same, read again. What was thrown is gone by then; an error has its text. */
export function fromStore(stored: JudgedCall): EndedCall {
  if ("output" in stored) return { kind: "output", output: stored.output };
  return { kind: "error", errorText: stored.errorText, error: new Error(stored.errorText) };
}

function resultContext(called: ToolCallContext, ended: EndedCall, durationMs: number): ToolCallResultContext {
  const result =
    ended.kind === "output" ? { success: true, output: ended.output } : { success: false, error: ended.error };
  return { ...called, durationMs, ...result } as ToolCallResultContext;
}
