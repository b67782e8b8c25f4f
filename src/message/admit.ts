import { findTool, type MessageBuilder } from "./builder.ts";
import { canAsk, canDeny, canRespond, findCall } from "./fold-tool.ts";
import { applyChunk } from "./fold.ts";
import { storedToolInput } from "./tool-input.ts";
import { isTerminal, type ToolPart, type UIMessageChunk } from "./types.ts";
import { MAX_ID_LENGTH } from "./validate.ts";

export interface AdmitOptions {
  /** The stream goes on with a message that clients already have. */
  readonly continuation?: boolean;
  /** Whether another stored message has this id; then the stream may not have it. Must be fast, must not throw. */
  readonly isTaken?: (id: string) => boolean;
}

/**
 * Decides what of a model's chunk is stored and sent. A chunk about something that clients do not have ends them with an error,
 * and a repetition takes them back to an earlier state, so both are put right here:
 *
 * - `start` tells the id that the message is stored under, none in a continuation. A second one tells only its metadata: clients
 *   begin anew with each.
 * - Text and reasoning without a start get one; an end without a start is dropped.
 * - What a call has behind it is dropped, and what is about a call that is not in this message.
 * - An input that completes after its approval was asked for is followed by the question again.
 * - Errors are no chunks: the caller reports them.
 *
 * Does not change `builder`; give it the result in order before the next call ({@link takeChunk} does).
 */
function admitChunk(builder: MessageBuilder, chunk: UIMessageChunk, options: AdmitOptions = {}): UIMessageChunk[] {
  switch (chunk.type) {
    case "start":
      if (!builder.started) return [admitStart(builder, chunk, options)];
      return chunk.messageMetadata === undefined
        ? []
        : [{ type: "message-metadata", messageMetadata: chunk.messageMetadata }];
    case "text-delta":
      return builder.openText.has(chunk.id) ? [chunk] : [{ type: "text-start", id: chunk.id }, chunk];
    case "text-end":
      return builder.openText.has(chunk.id) ? [chunk] : [];
    case "reasoning-delta":
      return builder.openReasoning.has(chunk.id) ? [chunk] : [{ type: "reasoning-start", id: chunk.id }, chunk];
    case "reasoning-end":
      return builder.openReasoning.has(chunk.id) ? [chunk] : [];
    case "tool-input-start":
      return findCall(builder, chunk.toolCallId) === undefined ? [chunk] : [];
    case "tool-input-delta":
      return findCall(builder, chunk.toolCallId)?.state === "input-streaming" ? [chunk] : [];
    case "tool-input-available":
      return admitInput(builder, chunk);
    case "tool-input-error": {
      const part = findCall(builder, chunk.toolCallId);
      return part !== undefined && isTerminal(part) ? [] : [withInput(chunk, storedToolInput(part ?? {}, chunk.input))];
    }
    case "tool-approval-request":
      return admitIf(findTool(builder, chunk.toolCallId), (part) => canAsk(part, chunk.approvalId), chunk);
    case "tool-approval-response":
      return admitIf(builder.approvals.get(chunk.approvalId), canRespond, chunk);
    case "tool-output-denied":
      return admitIf(findTool(builder, chunk.toolCallId), canDeny, chunk);
    case "tool-output-available":
    case "tool-output-error":
      return admitIf(findTool(builder, chunk.toolCallId), (part) => !isTerminal(part), chunk);
    case "error":
      return [];
    default:
      return [chunk];
  }
}

/** Admits a chunk and applies what was admitted. @returns what is to be stored and sent. */
export function takeChunk(builder: MessageBuilder, chunk: UIMessageChunk, options?: AdmitOptions): UIMessageChunk[] {
  const admitted = admitChunk(builder, chunk, options);
  for (const one of admitted) applyChunk(builder, one);
  return admitted;
}

function admitStart(
  builder: MessageBuilder,
  chunk: Extract<UIMessageChunk, { type: "start" }>,
  options: AdmitOptions,
): UIMessageChunk {
  const { messageId, ...rest } = chunk;
  if (options.continuation === true || builder.inherited > 0) return messageId === undefined ? chunk : rest;
  if (messageId === builder.id) return chunk;
  const adopt =
    typeof messageId === "string" &&
    messageId !== "" &&
    messageId.length <= MAX_ID_LENGTH &&
    options.isTaken?.(messageId) !== true;
  return adopt ? chunk : { ...chunk, messageId: builder.id };
}

function admitInput(
  builder: MessageBuilder,
  chunk: Extract<UIMessageChunk, { type: "tool-input-available" }>,
): UIMessageChunk[] {
  const part = findCall(builder, chunk.toolCallId);
  if (part === undefined || part.state === "input-streaming") {
    return [withInput(chunk, storedToolInput(part ?? {}, chunk.input))];
  }
  if (part.state !== "approval-requested" || part.approval === undefined) return [];
  // What a person was shown in full is what is run: only a guess gives way.
  const input = builder.guessed.has(part) ? storedToolInput(part, chunk.input) : part.input;
  return [withInput(chunk, input), approvalRequest(part.toolCallId, part.approval)];
}

function approvalRequest(toolCallId: string, approval: NonNullable<ToolPart["approval"]>): UIMessageChunk {
  return {
    type: "tool-approval-request",
    approvalId: approval.id,
    toolCallId,
    ...(approval.descriptor !== undefined && { approvalDescriptor: approval.descriptor }),
    ...("inputSchemaInput" in approval && { inputSchemaInput: approval.inputSchemaInput }),
    ...(approval.requestReason !== undefined && { reason: approval.requestReason }),
    ...(approval.isAutomatic === true && { isAutomatic: true }),
    ...(approval.signature !== undefined && { signature: approval.signature }),
  };
}

function withInput<C extends { input: unknown }>(chunk: C, input: unknown): C {
  return chunk.input === input ? chunk : { ...chunk, input };
}

function admitIf(
  part: ToolPart | undefined,
  may: (part: ToolPart) => boolean,
  chunk: UIMessageChunk,
): UIMessageChunk[] {
  return part !== undefined && may(part) ? [chunk] : [];
}
