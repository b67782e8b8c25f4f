import type { MessageBuilder } from "../../message/builder.ts";
import { isTerminal, isToolPart, type Part, type ToolPart } from "../../message/types.ts";

/** The parts of an answer, step by step. */
export function stepsOf(parts: readonly Part[]): Part[][] {
  const steps: Part[][] = [];
  for (const part of parts) {
    if (part.type === "step-start") steps.push([]);
    else if (steps.length === 0) steps.push([part]);
    else steps.at(-1)?.push(part);
  }
  return steps;
}

/** The calls of the last step that are ours or a client's to answer. A provider answers its own. */
export function lastCalls(builder: MessageBuilder): ToolPart[] {
  const from = builder.parts.findLastIndex((part) => part.type === "step-start");
  const calls: ToolPart[] = [];
  for (const part of builder.parts.slice(from + 1)) {
    if (isToolPart(part) && part.providerExecuted !== true) calls.push(part);
  }
  return calls;
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
  const settled = settledParts(builder, called).length;
  return builder.parts.slice(builder.inherited + settled).some((part) => part.type !== "step-start");
}

/** The text of the step under way, if it has brought nothing else that a model could go on from. */
export function partialText(builder: MessageBuilder, called: number): string {
  const settled = settledParts(builder, called).length;
  const partial = builder.parts.slice(builder.inherited + settled);
  if (partial.some((part) => isToolPart(part) && !isTerminal(part))) return "";
  return partial.map((part) => (part.type === "text" ? part.text : "")).join("");
}
