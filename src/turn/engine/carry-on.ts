import type { MessageBuilder } from "../../message/builder.ts";
import { INTERRUPTED_TEXT, repairMessage, type RepairOptions } from "../../message/repair.ts";
import {
  isTerminal,
  isToolPart,
  type Part,
  toolName,
  type UIMessage,
  type UIMessageChunk,
} from "../../message/types.ts";

/*
 * Carrying on a stream that was cut
 *
 * The log of the stream is the truth: clients have seen it, and will be given it again. So a second attempt
 * does not start a stream of its own; its chunks are fitted behind those of the first. What was open is closed
 * or gone on with: a text goes on in the same part, a reasoning ends, a tool call without a result gets the
 * error that it was interrupted. What the second attempt repeats (the start of the message) is left out.
 */

/**
 * Chunks that close what a cut stream left open, so that nothing of it hangs. An open text is left to go on.
 * @param replaced is told of a call that another part stands for: a stream can only give the call an error.
 */
export function closingChunks(
  builder: MessageBuilder,
  options: RepairOptions = {},
  replaced: (toolCallId: string, part: Part) => void = () => {},
): UIMessageChunk[] {
  const chunks: UIMessageChunk[] = [];
  for (const id of builder.openReasoning.keys()) chunks.push({ type: "reasoning-end", id });
  const message: UIMessage = { id: builder.id, role: "assistant", parts: builder.parts };
  for (const part of builder.parts) {
    if (!isToolPart(part) || isTerminal(part)) continue;
    const isCut = part.state === "input-streaming" || options.isCut?.(part) === true;
    if (options.keepPending === true && !isCut) continue;
    const { toolCallId } = part;
    const ending = { ...options, keepPending: options.keepPending === true && !isCut };
    const [repaired] = repairMessage({ ...message, parts: [part] as UIMessage["parts"] }, ending).parts;
    if (part.state === "input-streaming") {
      const name = toolName(part);
      chunks.push({ type: "tool-input-available", toolCallId, toolName: name, input: part.input ?? {} });
    }
    if (repaired !== undefined && isToolPart(repaired) && repaired.state === "output-available") {
      chunks.push({ type: "tool-output-available", toolCallId, output: repaired.output });
    } else {
      const text = repaired !== undefined && isToolPart(repaired) ? repaired.errorText : undefined;
      chunks.push({ type: "tool-output-error", toolCallId, errorText: text ?? INTERRUPTED_TEXT });
      if (repaired !== undefined && !isToolPart(repaired)) replaced(toolCallId, repaired);
    }
  }
  return chunks;
}

/** Whether the cut stream brought anything that a model could go on from. */
export function hasContent(builder: MessageBuilder): boolean {
  return builder.parts.slice(builder.inherited).some((part) => {
    if (part.type === "text" || part.type === "reasoning") return part.text !== "";
    return part.type !== "step-start";
  });
}

/** Fits the chunks of a second attempt behind those of the first. One per attempt: it remembers. */
export function continuationFilter(builder: MessageBuilder): (chunk: UIMessageChunk) => UIMessageChunk[] {
  const [openId] = builder.openText.keys();
  const renamed = new Map<string, string>();
  let open = openId;
  // A step that had only just begun is the one that the second attempt begins with.
  let inStep = open !== undefined || builder.parts.at(-1)?.type === "step-start";
  return (chunk) => {
    switch (chunk.type) {
      case "start":
        return chunk.messageMetadata === undefined
          ? []
          : [{ type: "message-metadata", messageMetadata: chunk.messageMetadata }];
      case "start-step": {
        const first = !inStep;
        inStep = false;
        return first ? [chunk] : [];
      }
      case "text-start": {
        if (open === undefined) return [chunk];
        renamed.set(chunk.id, open);
        open = undefined;
        return [];
      }
      case "text-delta": {
        const id = renamed.get(chunk.id);
        return id === undefined ? [chunk] : [{ ...chunk, id }];
      }
      case "text-end": {
        const id = renamed.get(chunk.id);
        renamed.delete(chunk.id);
        return id === undefined ? [chunk] : [{ ...chunk, id }];
      }
      default: {
        if (open === undefined || !opensPart(chunk)) return [chunk];
        const end: UIMessageChunk = { type: "text-end", id: open };
        open = undefined;
        return [end, chunk];
      }
    }
  };
}

/** The model goes on with something else than the text that was cut. */
function opensPart(chunk: UIMessageChunk): boolean {
  return (
    chunk.type === "reasoning-start" ||
    chunk.type === "tool-input-start" ||
    chunk.type === "tool-input-available" ||
    chunk.type === "finish-step"
  );
}
