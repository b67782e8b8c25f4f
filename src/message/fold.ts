import { dataKey, type DataPart, type MessageBuilder, pushPart, truncateParts } from "./builder.ts";
import { applyToolChunk } from "./fold-tool.ts";
import { mergeJson } from "../base/json.ts";
import type { ProviderMetadata, ReasoningUIPart, TextUIPart, UIMessageChunk } from "./types.ts";

/**
 * Applies one chunk with the same result as the AI SDK's client, but leniently: text without a start gets its part, results of
 * unknown calls and unknown types are ignored, a repeated tool chunk never takes a call back. Never throws on a parsed chunk.
 * @returns whether the message changed.
 */
export function applyChunk(builder: MessageBuilder, chunk: UIMessageChunk): boolean {
  switch (chunk.type) {
    case "start":
      if (chunk.messageId && !builder.started && builder.inherited === 0) builder.id = chunk.messageId;
      builder.started = true;
      mergeMetadata(builder, chunk.messageMetadata);
      return true;
    case "finish":
      if (chunk.finishReason !== undefined) builder.finishReason = chunk.finishReason;
      return mergeMetadata(builder, chunk.messageMetadata);
    case "message-metadata":
      return mergeMetadata(builder, chunk.messageMetadata);
    case "start-step":
      pushPart(builder, { type: "step-start" });
      builder.stepAt = builder.parts.length;
      return true;
    case "reset-step":
      // What was there before this stream is not this stream's to take back.
      truncateParts(builder, Math.max(builder.stepAt, builder.inherited));
      return true;
    case "text-start":
      addMetadata(openText(builder, chunk.id), chunk.providerMetadata);
      return true;
    case "text-delta":
      return append(builder.openText.get(chunk.id) ?? openText(builder, chunk.id), chunk);
    case "text-end": {
      const part = builder.openText.get(chunk.id);
      if (part !== undefined && chunk.citations !== undefined) part.citations = chunk.citations;
      return close(builder.openText, chunk);
    }
    case "reasoning-start":
      addMetadata(openReasoning(builder, chunk.id), chunk.providerMetadata);
      return true;
    case "reasoning-delta":
      return append(builder.openReasoning.get(chunk.id) ?? openReasoning(builder, chunk.id), chunk);
    case "reasoning-end":
      return close(builder.openReasoning, chunk);
    case "file":
    case "reasoning-file": {
      const { type, url, mediaType, providerMetadata } = chunk;
      pushPart(builder, { type, mediaType, url, ...(providerMetadata && { providerMetadata }) });
      return true;
    }
    case "source-url":
    case "source-document":
    case "custom":
    case "steering-message":
      pushPart(builder, { ...chunk });
      return true;
    case "tool-input-start":
    case "tool-input-delta":
    case "tool-input-available":
    case "tool-input-error":
    case "tool-approval-request":
    case "tool-approval-response":
    case "tool-output-available":
    case "tool-output-error":
    case "tool-output-denied":
      return applyToolChunk(builder, chunk);
    case "finish-step":
    case "abort":
    case "error":
      return false;
    default:
      // The type says that only data chunks are left; a stream may be newer than the type.
      return chunk.type.startsWith("data-") && applyData(builder, chunk);
  }
}

/** Whether the message should be saved after this chunk: something whole was added. The log has the small ones in between. */
export function isBoundary(chunk: UIMessageChunk): boolean {
  switch (chunk.type) {
    case "text-end":
    case "reasoning-end":
    case "tool-input-available":
    case "tool-input-error":
    case "tool-approval-request":
    case "tool-approval-response":
    case "tool-output-error":
    case "tool-output-denied":
    case "file":
    case "reasoning-file":
    case "source-url":
    case "source-document":
    case "custom":
    case "steering-message":
    case "message-metadata":
    case "reset-step":
    case "finish-step":
    case "finish":
      return true;
    case "tool-output-available":
      return chunk.preliminary !== true;
    default:
      return isStoredData(chunk);
  }
}

function isStoredData(chunk: UIMessageChunk): boolean {
  return chunk.type.startsWith("data-") && "data" in chunk && !("transient" in chunk && chunk.transient === true);
}

function applyData(builder: MessageBuilder, chunk: DataPart & { transient?: boolean }): boolean {
  if (chunk.transient === true) return false;
  const existing = chunk.id === undefined ? undefined : builder.data.get(dataKey(chunk.type, chunk.id));
  if (existing !== undefined) existing.data = chunk.data;
  else pushPart(builder, { ...chunk });
  return true;
}

function openText(builder: MessageBuilder, id: string): TextUIPart {
  const part: TextUIPart = { type: "text", text: "", state: "streaming" };
  pushPart(builder, part);
  builder.openText.set(id, part);
  return part;
}

function openReasoning(builder: MessageBuilder, id: string): ReasoningUIPart {
  const part: ReasoningUIPart = { type: "reasoning", id, text: "", state: "streaming" };
  pushPart(builder, part);
  builder.openReasoning.set(id, part);
  return part;
}

function append(
  part: TextUIPart | ReasoningUIPart,
  chunk: { delta: string; providerMetadata?: ProviderMetadata },
): boolean {
  part.text += chunk.delta;
  addMetadata(part, chunk.providerMetadata);
  return true;
}

function close(
  open: Map<string, TextUIPart> | Map<string, ReasoningUIPart>,
  chunk: { id: string; providerMetadata?: ProviderMetadata },
): boolean {
  const part = open.get(chunk.id);
  if (part === undefined) return false;
  addMetadata(part, chunk.providerMetadata);
  part.state = "done";
  return open.delete(chunk.id);
}

// Merged, because providers spread what they need back over start, deltas and end.
function addMetadata(part: TextUIPart | ReasoningUIPart, metadata: ProviderMetadata | undefined): void {
  if (metadata) part.providerMetadata = mergeJson(part.providerMetadata, metadata) as ProviderMetadata;
}

function mergeMetadata(builder: MessageBuilder, metadata: unknown): boolean {
  if (metadata === undefined || metadata === null) return false;
  builder.metadata = mergeJson(builder.metadata, metadata);
  return true;
}
