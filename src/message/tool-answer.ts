import { findTool, type MessageBuilder, replaceTool } from "./builder.ts";
import {
  asPart,
  isAnswered,
  isAwaitingAnswer,
  isPending,
  isToolPart,
  type ToolApproval,
  type ToolPart,
  toolParts,
  type UIMessage,
} from "./types.ts";

/** What a failed tool says when the client gave no reason. */
export const DENIED_TEXT = "Tool execution denied by user";

/** A result that a client, or another server, sends for a call. */
export interface ToolResult {
  readonly toolCallId: string;
  /** `output-error` makes it an error; anything else an output. */
  readonly state?: "output-available" | "output-error";
  readonly output?: unknown;
  readonly errorText?: string;
}

/** A person's answer to a call that asked for one. */
interface ToolApprovalAnswer {
  readonly toolCallId: string;
  readonly approved: boolean;
  /** When given, an answer to another question than the one that is open is ignored. */
  readonly approvalId?: string;
  readonly reason?: string;
}

/** `changed` is false when the call is unknown or was answered before; then `message` is the same object. */
interface Answered {
  readonly message: UIMessage;
  readonly changed: boolean;
}

/** Gives a waiting call its result. The first one wins: a call that has ended never changes. */
export function applyToolResult(message: UIMessage, result: ToolResult): Answered {
  return answer(message, result.toolCallId, (part) => withResult(part, result));
}

/** Answers a call's question for approval. Only the first answer counts. */
export function applyToolApproval(message: UIMessage, given: ToolApprovalAnswer): Answered {
  return answer(message, given.toolCallId, (part) => withApproval(part, given));
}

/** {@link applyToolResult} for a message that is still being written. @returns whether it changed. */
export function applyToolResultLive(builder: MessageBuilder, result: ToolResult): boolean {
  return answerLive(builder, result.toolCallId, (part) => withResult(part, result));
}

/** {@link applyToolApproval} for a message that is still being written. @returns whether it changed. */
export function applyToolApprovalLive(builder: MessageBuilder, given: ToolApprovalAnswer): boolean {
  return answerLive(builder, given.toolCallId, (part) => withApproval(part, given));
}

/** How far the answers to a message's calls have come. */
interface Batch {
  /** Calls that need nothing from outside any more. */
  readonly answered: number;
  /** Calls that a client or a person has yet to answer. */
  readonly waiting: number;
}

/** Counts the calls of `message` that are answered and those that are not. */
export function batchState(message: UIMessage): Batch {
  let answered = 0;
  let waiting = 0;
  for (const part of toolParts(message)) {
    if (isAnswered(part)) answered += 1;
    else if (isAwaitingAnswer(part)) waiting += 1;
  }
  return { answered, waiting };
}

function withResult(part: ToolPart, result: ToolResult): ToolPart | undefined {
  if (!isPending(part)) return undefined;
  const { output: _output, errorText: _errorText, preliminary: _preliminary, rawInput: _rawInput, ...call } = part;
  if (result.state === "output-error") {
    return { ...call, state: "output-error", errorText: result.errorText || DENIED_TEXT };
  }
  return { ...call, state: "output-available", output: result.output ?? null, preliminary: false };
}

function withApproval(part: ToolPart, given: ToolApprovalAnswer): ToolPart | undefined {
  if (part.state !== "input-available" && part.state !== "approval-requested") return undefined;
  const asked = part.approval?.id;
  if (given.approvalId !== undefined && asked !== undefined && given.approvalId !== asked) return undefined;
  const approval: ToolApproval = {
    ...part.approval,
    id: asked ?? given.approvalId ?? given.toolCallId,
    approved: given.approved,
  };
  if (given.reason !== undefined) approval.reason = given.reason;
  return { ...part, state: given.approved ? "approval-responded" : "output-denied", approval };
}

type Answer = (part: ToolPart) => ToolPart | undefined;

function answerLive(builder: MessageBuilder, toolCallId: string, apply: Answer): boolean {
  const part = findTool(builder, toolCallId);
  const next = part === undefined ? undefined : apply(part);
  if (next !== undefined) replaceTool(builder, next);
  return next !== undefined;
}

// Every part of the call that still waits: older releases could store one call twice.
function answer(message: UIMessage, toolCallId: string, apply: Answer): Answered {
  let changed = false;
  const parts = message.parts.map((part) => {
    if (!isToolPart(part) || part.toolCallId !== toolCallId) return part;
    const next = apply(part);
    if (next === undefined) return part;
    changed = true;
    return asPart(next);
  });
  return changed ? { message: { ...message, parts }, changed } : { message, changed };
}
