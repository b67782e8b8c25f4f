import type { ToolSet } from "ai";
import { type ToolPart, toolName } from "../../message/types.ts";
import { toolNamed } from "../../tool/define.ts";
import type { AnswerVerdict } from "../engine/engine.ts";
import type { StepParts } from "./parts.ts";

/** Nobody reads a question and answers it faster than this. */
const SECOND_QUESTION_MS = 400;

/**
 * Whether those who talk with the agent may give a call an answer; undefined: by the rule for all. A result may come from
 * outside for what runs outside alone: nobody else can say what a tool of the server did. A person may decide what was asked,
 * and nothing before it is asked: who decides first is the agent's own rule.
 */
export function mayAnswerStep(
  { book, host }: StepParts,
  part: ToolPart,
  messageId: string,
  kind: "result" | "approval",
  isClient: boolean,
  tools: ToolSet | undefined,
): AnswerVerdict | undefined {
  const { toolCallId } = part;
  if (kind === "approval") {
    if (part.state !== "approval-requested") return false;
    if (!isClient) return true;
    // A call that was approved has asked something else a moment ago. Clients name the call alone in their answers, so that
    // one which comes now is the answer of another tab, or a second click, to what was asked before.
    const row = book.find(messageId, toolCallId);
    if (row === undefined || row.askedAt === null || row.decidedAt === null) return true;
    return host.clock.now() - row.askedAt < SECOND_QUESTION_MS ? "early" : true;
  }
  if (book.isOfSteps(messageId, toolCallId)) return false;
  // What its tools are is known only where it runs step by step, and once it was prepared.
  if (tools === undefined) return undefined;
  const tool = toolNamed(tools, toolName(part));
  return tool !== undefined && tool.execute === undefined && part.state === "input-available";
}
