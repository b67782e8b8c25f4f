import { findTool, type MessageBuilder, pushPart, streamedInput } from "./builder.ts";
import { storedToolInput } from "./tool-input.ts";
import { asPart, isTerminal, type ToolApproval, toolName, type ToolPart, type UIMessageChunk } from "./types.ts";

/** The chunks that are about one tool call. */
type ToolChunk = Extract<UIMessageChunk, { type: `tool-${string}` }>;
type InputChunk = Extract<ToolChunk, { type: "tool-input-start" | "tool-input-available" | "tool-input-error" }>;
type OutputChunk = Extract<ToolChunk, { type: "tool-output-available" | "tool-output-error" }>;

/** Applies one tool chunk. A call only moves forward; what would take it back is ignored. */
export function applyToolChunk(builder: MessageBuilder, chunk: ToolChunk): boolean {
  switch (chunk.type) {
    case "tool-input-start":
      return startInput(builder, chunk);
    case "tool-input-delta": {
      const part = findTool(builder, chunk.toolCallId);
      if (part?.state !== "input-streaming") return false;
      part.rawInput = (typeof part.rawInput === "string" ? part.rawInput : "") + chunk.inputTextDelta;
      return true;
    }
    case "tool-input-available":
      return completeInput(builder, chunk);
    case "tool-input-error": {
      const part = findCall(builder, chunk.toolCallId) ?? addCall(builder, chunk);
      if (isTerminal(part)) return false;
      rename(part, chunk.toolName);
      part.input = storedToolInput(part, chunk.input);
      settle(builder, part, chunk);
      return true;
    }
    case "tool-approval-request": {
      const part = findTool(builder, chunk.toolCallId);
      if (part === undefined || !canAsk(part, chunk.approvalId)) return false;
      closeInput(builder, part);
      part.state = "approval-requested";
      part.approval = approvalOf(chunk);
      builder.approvals.set(chunk.approvalId, part);
      return true;
    }
    case "tool-approval-response": {
      const part = builder.approvals.get(chunk.approvalId);
      if (part === undefined || !canRespond(part)) return false;
      part.state = "approval-responded";
      part.approval = { ...part.approval, id: chunk.approvalId, approved: chunk.approved };
      if (chunk.reason !== undefined) part.approval.reason = chunk.reason;
      if (chunk.providerExecuted !== undefined) part.providerExecuted = chunk.providerExecuted;
      if (chunk.providerMetadata) part.callProviderMetadata = chunk.providerMetadata;
      return true;
    }
    case "tool-output-denied": {
      const part = findTool(builder, chunk.toolCallId);
      if (part === undefined || !canDeny(part)) return false;
      closeInput(builder, part);
      builder.guessed.delete(part);
      part.state = "output-denied";
      return true;
    }
    case "tool-output-available":
    case "tool-output-error": {
      const part = findTool(builder, chunk.toolCallId);
      if (part === undefined || isTerminal(part)) return false;
      closeInput(builder, part);
      settle(builder, part, chunk);
      return true;
    }
  }
}

/**
 * The call that an input chunk is about, or `undefined` for a new one. Some providers count from zero in each step, so an id that
 * this stream settled in an earlier step is free; calls from before the stream are not: there the model repeats itself.
 */
export function findCall(builder: MessageBuilder, toolCallId: string): ToolPart | undefined {
  const slot = builder.tools.get(toolCallId);
  if (slot === undefined) return undefined;
  const reused = slot.index >= builder.inherited && slot.index < builder.stepAt && isTerminal(slot.part);
  return reused ? undefined : slot.part;
}

/** Whether a call may ask now. One that was approved may ask another question: it goes on until it needs more. */
export function canAsk(part: ToolPart, approvalId: string): boolean {
  if (part.state === "approval-responded") return part.approval?.approved === true && part.approval.id !== approvalId;
  return !isTerminal(part);
}

/** Whether an approval may still be answered by the stream itself. */
export function canRespond(part: ToolPart): boolean {
  return part.state !== "approval-responded" && !isTerminal(part);
}

/** Whether a denial may still arrive: not once a person has said yes. */
export function canDeny(part: ToolPart): boolean {
  if (part.state === "approval-responded") return part.approval?.approved === false;
  return !isTerminal(part);
}

function startInput(builder: MessageBuilder, chunk: Extract<InputChunk, { type: "tool-input-start" }>): boolean {
  const known = findCall(builder, chunk.toolCallId);
  if (known !== undefined && known.state !== "input-streaming") return false;
  const part = known ?? addCall(builder, chunk);
  rename(part, chunk.toolName);
  describe(part, chunk);
  // A start that comes again is followed by the whole input again.
  delete part.input;
  delete part.rawInput;
  delete part.inputEncoding;
  if (chunk.inputEncoding !== undefined) part.inputEncoding = chunk.inputEncoding;
  return true;
}

function completeInput(builder: MessageBuilder, chunk: Extract<InputChunk, { type: "tool-input-available" }>): boolean {
  const part = findCall(builder, chunk.toolCallId) ?? addCall(builder, chunk);
  if (part.state === "input-streaming") {
    part.state = "input-available";
    rename(part, chunk.toolName);
  } else if (!builder.guessed.delete(part)) {
    return false;
  }
  describe(part, chunk);
  part.input = storedToolInput(part, chunk.input);
  delete part.rawInput;
  return true;
}

/** The input ends here, whatever came of it. */
function closeInput(builder: MessageBuilder, part: ToolPart): void {
  if (part.state !== "input-streaming") return;
  part.input = storedToolInput(part, streamedInput(part));
  delete part.rawInput;
  builder.guessed.add(part);
}

function settle(
  builder: MessageBuilder,
  part: ToolPart,
  chunk: OutputChunk | Extract<InputChunk, { type: "tool-input-error" }>,
): void {
  delete part.output;
  delete part.errorText;
  delete part.preliminary;
  delete part.rawInput;
  if (chunk.type === "tool-output-available") {
    part.state = "output-available";
    part.output = chunk.output;
    if (chunk.preliminary !== undefined) part.preliminary = chunk.preliminary;
  } else {
    part.state = "output-error";
    part.errorText = chunk.errorText;
  }
  if (chunk.providerExecuted !== undefined) part.providerExecuted = chunk.providerExecuted;
  if (chunk.toolMetadata !== undefined) part.toolMetadata = chunk.toolMetadata;
  if (chunk.providerMetadata) part.resultProviderMetadata = chunk.providerMetadata;
  builder.guessed.delete(part);
}

function addCall(builder: MessageBuilder, chunk: InputChunk): ToolPart {
  const { toolCallId } = chunk;
  const part: ToolPart =
    chunk.dynamic === true
      ? { type: "dynamic-tool", toolName: chunk.toolName, toolCallId, state: "input-streaming" }
      : { type: `tool-${chunk.toolName}`, toolCallId, state: "input-streaming" };
  pushPart(builder, asPart(part));
  return part;
}

function rename(part: ToolPart, name: string): void {
  if (toolName(part) === name) return;
  if (part.type === "dynamic-tool") part.toolName = name;
  else part.type = `tool-${name}`;
}

function describe(part: ToolPart, chunk: Exclude<InputChunk, { type: "tool-input-error" }>): void {
  if (chunk.title !== undefined) part.title = chunk.title;
  if (chunk.toolMetadata !== undefined) part.toolMetadata = chunk.toolMetadata;
  if (chunk.providerExecuted !== undefined) part.providerExecuted = chunk.providerExecuted;
  if (chunk.providerMetadata) part.callProviderMetadata = chunk.providerMetadata;
}

function approvalOf(chunk: Extract<ToolChunk, { type: "tool-approval-request" }>): ToolApproval {
  const approval: ToolApproval = { id: chunk.approvalId };
  if (chunk.approvalDescriptor !== undefined) approval.descriptor = chunk.approvalDescriptor;
  if ("inputSchemaInput" in chunk) approval.inputSchemaInput = chunk.inputSchemaInput;
  if (chunk.reason !== undefined) approval.requestReason = chunk.reason;
  if (chunk.isAutomatic === true) approval.isAutomatic = true;
  if (chunk.signature !== undefined) approval.signature = chunk.signature;
  return approval;
}
