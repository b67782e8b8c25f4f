import type { ToolSet } from "ai";
import type { ToolPart, UIMessage } from "../message/types.ts";
import { asPart, isToolPart, toolName } from "../message/types.ts";

/** What the output of a tool begins with that is not shown any more. */
const MARK = "[Cleared to make room: ";

/** The call with a text in the place of its output, which says how to get it again. */
export function cleared(part: ToolPart, messageId: string): ToolPart {
  const { resultProviderMetadata: _metadata, ...rest } = part;
  const text = `${MARK}the output of ${toolName(part)}, call ${part.toolCallId}, is kept in message ${messageId}. Search the conversation for it, or call the tool again if you need it.]`;
  return { ...rest, output: text };
}

/** Whether an output is what {@link cleared} left. */
export function isCleared(output: unknown): output is string {
  return typeof output === "string" && output.startsWith(MARK);
}

/**
 * The tools for one message. A tool that shows its outputs to the model in its own way knows nothing of texts that stand
 * in their places. The same object when there are none.
 */
export function toolsFor(message: UIMessage, tools: ToolSet): ToolSet {
  const names = new Set<string>();
  for (const part of message.parts) if (isToolPart(part) && isCleared(part.output)) names.add(toolName(part));
  const own = [...names].filter((name) => tools[name]?.toModelOutput !== undefined);
  if (own.length === 0) return tools;
  const changed = { ...tools };
  for (const name of own) {
    const tool = tools[name];
    const show = tool?.toModelOutput;
    if (tool === undefined || show === undefined) continue;
    changed[name] = {
      ...tool,
      toModelOutput: (call: Parameters<typeof show>[0]) =>
        isCleared(call.output) ? { type: "text", value: call.output } : show(call),
    } as ToolSet[string];
  }
  return changed;
}

/** A message with the outputs of these calls cleared. */
export function withCleared(message: UIMessage, calls: ReadonlySet<string>): UIMessage {
  const parts = message.parts.map((part) =>
    isToolPart(part) && calls.has(part.toolCallId) ? asPart(cleared(part, message.id)) : part,
  );
  return { ...message, parts };
}
