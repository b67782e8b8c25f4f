import { type MessageBuilder, streamedInput } from "../message/builder.ts";
import { sameJson } from "../base/json.ts";
import {
  isToolPart,
  type Part,
  type ToolPart,
  toolName,
  type UIMessage,
  type UIMessageChunk,
} from "../message/types.ts";

/* A stream that ended unheard is not kept, but its message is: comparing the two finds what a listener missed. */

/** The chunks that make `built` the stored `message`. Additions only: one that was cut or cleaned takes nothing back. */
export function catchUp(built: MessageBuilder, message: UIMessage): UIMessageChunk[] {
  const chunks: UIMessageChunk[] = [];
  if (!built.started) chunks.push({ type: "start", messageId: message.id });
  for (const [i, part] of message.parts.entries()) {
    const have = built.parts[i];
    if (have === undefined) chunks.push(...wholePart(part, `${message.id}-${i}`));
    else if (have.type === part.type) chunks.push(...restOfPart(built, have, part));
    // Another part where ours is: the two have nothing to do with each other.
    else break;
  }
  const { metadata } = message;
  if (metadata !== undefined && !sameJson(metadata, built.metadata)) {
    chunks.push({ type: "message-metadata", messageMetadata: metadata });
  }
  return chunks;
}

function restOfPart(built: MessageBuilder, have: Part, part: Part): UIMessageChunk[] {
  if ((have.type === "text" || have.type === "reasoning") && (part.type === "text" || part.type === "reasoning")) {
    const open: ReadonlyMap<string, Part> = have.type === "text" ? built.openText : built.openReasoning;
    const id = [...open].find(([, one]) => one === have)?.[0];
    if (id === undefined || !part.text.startsWith(have.text)) return [];
    const rest = part.text.slice(have.text.length);
    const { type } = have;
    const end: UIMessageChunk[] = part.state === "streaming" ? [] : [{ type: `${type}-end`, id }];
    return rest === "" ? end : [{ type: `${type}-delta`, id, delta: rest }, ...end];
  }
  if (isToolPart(have) && isToolPart(part) && have.toolCallId === part.toolCallId) return toolChunks(part, have);
  return [];
}

function wholePart(part: Part, id: string): UIMessageChunk[] {
  if (isToolPart(part)) return toolChunks(part);
  switch (part.type) {
    case "step-start":
      return [{ type: "start-step" }];
    case "text":
    case "reasoning": {
      const { type, text } = part;
      const own = part.type === "reasoning" ? (part.id ?? id) : id;
      return [
        { type: `${type}-start`, id: own },
        { type: `${type}-delta`, id: own, delta: text },
        { type: `${type}-end`, id: own },
      ];
    }
    default:
      // Of all others, the part and the chunk have the same shape.
      return [{ ...part } as UIMessageChunk];
  }
}

/** What happened to a call since it stood at `have`. */
function toolChunks(part: ToolPart, have?: ToolPart): UIMessageChunk[] {
  const { toolCallId, approval } = part;
  const chunks: UIMessageChunk[] = [];
  if (have === undefined || have.state === "input-streaming") {
    const dynamic = part.type === "dynamic-tool" ? { dynamic: true } : {};
    const input = streamedInput(part);
    chunks.push({ type: "tool-input-available", toolCallId, toolName: toolName(part), input, ...dynamic });
  }
  if (have?.state === part.state) return chunks;
  const asked = approval !== undefined && have?.approval === undefined;
  if (asked) chunks.push({ type: "tool-approval-request", approvalId: approval.id, toolCallId });
  if (part.state === "output-available")
    chunks.push({ type: "tool-output-available", toolCallId, output: part.output });
  if (part.state === "output-error")
    chunks.push({ type: "tool-output-error", toolCallId, errorText: part.errorText ?? "" });
  if (part.state === "output-denied") chunks.push({ type: "tool-output-denied", toolCallId });
  return chunks;
}

/** The answer in `messages` that a turn made: by its id, else the one behind the messages that it answers. */
export function findAnswer(
  messages: readonly UIMessage[],
  built: MessageBuilder,
  messageIds: readonly string[] | undefined,
): UIMessage | undefined {
  if (built.started) return messages.find(({ id, role }) => id === built.id && role === "assistant");
  const asked = messages.findLastIndex(({ id }) => messageIds?.includes(id) === true);
  const next = asked === -1 ? undefined : messages[asked + 1];
  return next?.role === "assistant" ? next : undefined;
}
