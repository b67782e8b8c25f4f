import type { MessageBuilder } from "../../message/builder.ts";
import { isTerminal, isToolPart, type Part, type ToolPart, toolName } from "../../message/types.ts";
import { BUDGET_TOOL } from "../../model/budget-question.ts";

/** The parts of an answer, step by step. What was said to it before its first step belongs to that one. */
export function stepsOf(parts: readonly Part[]): Part[][] {
  const steps: Part[][] = [];
  let begun = false;
  for (const part of parts) {
    const starts = part.type === "step-start";
    if (steps.length === 0 || (starts && begun)) steps.push([]);
    if (starts) begun = true;
    else steps.at(-1)?.push(part);
  }
  return steps;
}

/** Calls of the last step for us or a client to answer. Not those of an unsettled model call: it is made again and may differ. */
export function lastCalls(builder: MessageBuilder, called: number): ToolPart[] {
  const end = openStepAt(builder, called);
  const settled = builder.parts.slice(0, end);
  const from = settled.findLastIndex((part) => part.type === "step-start");
  const open = builder.parts.slice(end).filter(isQuestion);
  const calls: ToolPart[] = [];
  for (const part of open.length > 0 ? open : settled.slice(from + 1)) {
    if (isToolPart(part) && part.providerExecuted !== true) calls.push(part);
  }
  return calls;
}

/** The engine's own question about the budget: a step of its own, that no model call has brought. */
function isQuestion(part: Part): boolean {
  return isToolPart(part) && toolName(part) === BUDGET_TOOL;
}

/** What this turn has added to the answer, without the step whose model call is not settled. */
export function settledParts(builder: MessageBuilder, called: number): Part[] {
  const own = builder.parts.slice(builder.inherited);
  let steps = 0;
  const end = own.findIndex((part) => part.type === "step-start" && ++steps > called);
  return end === -1 ? own : own.slice(0, end);
}

/** Whether the step under way has brought anything: an attempt was cut in it. */
export function hasPartial(builder: MessageBuilder, called: number): boolean {
  return builder.parts.slice(openStepAt(builder, called)).some((part) => part.type !== "step-start");
}

/** The text of the step under way, if it has brought nothing else that a model could go on from. */
export function partialText(builder: MessageBuilder, called: number): string {
  const partial = builder.parts.slice(openStepAt(builder, called));
  if (partial.some((part) => isToolPart(part) && !isTerminal(part))) return "";
  return partial.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** Where the step begins whose model call is not settled; the number of parts where there is none. */
export function openStepAt(builder: MessageBuilder, called: number): number {
  return builder.inherited + settledParts(builder, called).length;
}
